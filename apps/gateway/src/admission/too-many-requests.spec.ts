import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { pino } from 'pino';
import { NestLogger } from '@app/runtime/logger';
import { Readiness } from '@app/runtime/readiness';
import { eventually } from '@app/testing/eventually';
import { Connections } from '../server/connections';
import { SERVER_LIMITS } from '../server/server-limits';
import { MOST_IN_ITERATION, TooManyRequests } from './too-many-requests';

const logger = new NestLogger(pino({ enabled: false }));
/** No connection is closed. */
const open = { onClosed: () => undefined, endsBehind: () => true };

describe(TooManyRequests.name, () => {
  it('answers after the other sockets of the iteration, so that refused callers cannot starve timers and publishing', async () => {
    const tooMany = new TooManyRequests(logger, new Readiness(), open);
    let answeredAtOnce: boolean | undefined;
    const server = createServer((_, response) => {
      tooMany.refuse(response, 'request', 'in_flight');
      // Runs after everything that this socket's events can run.
      process.nextTick(() => void Promise.resolve().then(() => (answeredAtOnce = response.headersSent)));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      const { status, headers } = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } });
      expect([status, headers.get('x-request-id'), answeredAtOnce]).toEqual([429, 'request', false]);
    } finally {
      server.close();
    }
  });

  it('writes nothing to a connection that was closed meanwhile', async () => {
    const tooMany = new TooManyRequests(logger, new Readiness(), open);
    const server = createServer((_, response) => {
      tooMany.refuse(response, 'request', 'in_flight');
      response.req.socket.destroy();
      setImmediate(() => setImmediate(() => server.emit('checked', response.headersSent)));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      const checked = once(server, 'checked');
      await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
      expect(await checked).toEqual([false]);
    } finally {
      server.close();
    }
  });

  it(`answers at most ${MOST_IN_ITERATION} in one iteration of the event loop`, async () => {
    const tooMany = new TooManyRequests(logger, new Readiness(), open);
    const responses: ServerResponse[] = [];
    const answered: number[] = [];
    const calls = 3 * MOST_IN_ITERATION + 1;
    const server = createServer((_, response) => {
      if (responses.push(response) < calls) return;
      for (const each of responses) tooMany.refuse(each, 'request', 'in_flight');
      const count = () => {
        answered.push(responses.filter(({ headersSent }) => headersSent).length);
        if (answered.at(-1) !== calls) setImmediate(count);
      };
      setImmediate(count);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      const refusals = Array.from({ length: calls }, () =>
        fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } }),
      );
      expect(new Set((await Promise.all(refusals)).map(({ status }) => status))).toEqual(new Set([429]));
      expect(answered).toEqual([1, 2, 3].map((times) => times * MOST_IN_ITERATION).concat(calls));
    } finally {
      server.close();
    }
  });

  it('gives no time to connections that have closed', async () => {
    const connections = new Connections(SERVER_LIMITS, logger);
    const tooMany = new TooManyRequests(logger, new Readiness(), connections);
    const responses: ServerResponse[] = [];
    const all = 3 * MOST_IN_ITERATION + 1;
    const server = createServer((_, response) => {
      if (responses.push(response) === all) server.emit('arrived');
    });
    connections.watch(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const clients: Socket[] = [];
    const send = (count: number) => {
      const client = connect(port, '127.0.0.1');
      clients.push(client);
      client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(count));
    };
    try {
      const arrived = once(server, 'arrived');
      for (let count = 1; count < all; count += SERVER_LIMITS.maxOwed) send(SERVER_LIMITS.maxOwed);
      await eventually(() => responses.length === all - 1);
      send(1);
      await arrived;
      for (const response of responses) tooMany.refuse(response, 'request', 'in_flight');
      const last = responses.pop()!;
      for (const { req } of responses) req.socket.destroy();
      // In the first one they are not reported as closed yet.
      for (let iteration = 0; iteration < 2; iteration++) await new Promise(setImmediate);
      expect(last.headersSent).toBe(true);
    } finally {
      for (const client of clients) client.destroy();
      server.close();
    }
  });
});
