import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { register } from 'prom-client';
import { addressToListenOn } from './settings/listen-address';
import type { Readiness } from './readiness';

/**
 * HTTP server for operators, separate from the API: `/health/live` (checks no dependency), `/health/ready` (503 with the reasons) and `/metrics`
 * in the Prometheus text format.
 *
 * @param where port 0 takes a free port
 * @param reports further documents by their path, written as JSON
 */
export async function startOperationsServer(
  readiness: Readiness,
  where: { healthPort: number; healthHost: string },
  reports: ReadonlyMap<string, () => unknown> = new Map(),
): Promise<{ server: Server; port: number }> {
  const server = createServer((request, response) => {
    const send = (status: number, type: string, body: string) => response.writeHead(status, { 'content-type': type }).end(body);
    const json = (status: number, body: unknown) => send(status, 'application/json', JSON.stringify(body));
    const path = request.url?.split('?')[0] ?? '';
    const report = reports.get(path);
    if (request.method !== 'GET' && request.method !== 'HEAD') json(405, { status: 'method not allowed' });
    else if (path === '/health/live') json(200, { status: 'ok' });
    else if (path === '/health/ready') {
      void readiness.report().then((report) => json(report.status === 'ok' ? 200 : 503, report));
    } else if (path === '/metrics') {
      register.metrics().then(
        (text) => send(200, register.contentType, text),
        () => send(500, 'text/plain', 'metrics could not be collected'),
      );
    } else if (report) json(200, report());
    else json(404, { status: 'not found' });
  });
  server.headersTimeout = 5000;
  server.requestTimeout = 10_000;
  const host = await addressToListenOn(where.healthHost);
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(where.healthPort, host, resolve));
  return { server, port: (server.address() as AddressInfo).port };
}
