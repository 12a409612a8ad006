import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '@app/testing/eventually';
import { WatchedProcess } from './process';

let server: Server;
let ready: { status: number; body: unknown };
let metrics: string;
let watched: WatchedProcess;

beforeEach(async () => {
  ready = { status: 200, body: { status: 'ok', checks: { broker: 'up', users: 'up' } } };
  metrics = 'build_info{service="gateway",version="1"} 1\nprocess_start_time_seconds 5\n';
  server = createServer((request, response) => {
    if (request.url === '/health/ready') response.writeHead(ready.status).end(JSON.stringify(ready.body));
    else if (request.url === '/metrics') response.end(metrics);
    else response.end('{"calls":{"key":3}}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  watched = new WatchedProcess(`127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterEach(() => server.close());

/** Asks until it is so. */
const becomes = (state: string) =>
  eventually(() => {
    watched.ask();
    return watched.state === state;
  });

it('tells a ready process from one without a dependency, one that is not ready, and one that is gone', async () => {
  expect([watched.state, watched.service]).toEqual(['does not answer', 'unknown']);
  await becomes('ready');
  ready.body = { status: 'ok', checks: { broker: 'not connected', users: 'up' } };
  await becomes('impaired');
  expect(watched.dependencies).toEqual([{ name: 'broker', reason: 'not connected' }, { name: 'users' }]);
  ready = { status: 503, body: { status: 'unavailable', checks: { broker: 'not connected' } } };
  await becomes('not ready');
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  await becomes('does not answer');
  expect([watched.service, watched.now]).toEqual(['gateway', undefined]);
});

it('has rates only from readings of one life of the process', async () => {
  await becomes('ready');
  await eventually(() => {
    watched.ask();
    return watched.before !== undefined;
  });
  // Its calls before the first reading are no rate.
  expect(watched.tenants).toEqual([['key', 0]]);
  metrics = metrics.replace('seconds 5', 'seconds 6');
  await eventually(() => {
    watched.ask();
    return watched.now?.startedAt === 6;
  });
  expect(watched.before?.startedAt ?? 6).toBe(6);
});

it('does not read an answer without end', async () => {
  metrics = 'x'.repeat(5 * 1024 * 1024);
  await eventually(() => {
    watched.ask();
    return watched.reason.includes('more than');
  });
});
