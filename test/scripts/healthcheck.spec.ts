import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

describe('the health check of a container', () => {
  const answer = { status: 200, body: '{"status":"ok"}' };
  const server = createServer((_request, response) => response.writeHead(answer.status).end(answer.body));
  let port = 0;

  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  afterAll(() => server.close());

  const check = () =>
    new Promise<[code: number, printed: string]>((resolve) =>
      execFile(process.execPath, ['scripts/healthcheck.mjs'], { env: { HEALTH_PORT: String(port) } }, (error, stdout) =>
        resolve([Number(error?.code ?? 0), stdout.trim()]),
      ),
    );

  it('says of a process that it is ready, and why it is not', async () => {
    expect(await check()).toEqual([0, answer.body]);
    Object.assign(answer, { status: 503, body: '{"status":"unavailable","checks":{"database":"is unreachable"}}' });
    expect(await check()).toEqual([1, answer.body]);
  });

  it('says why no process answers', async () => {
    await new Promise((resolve) => server.close(resolve));
    expect(await check()).toEqual([1, 'ECONNREFUSED']);
  });
});
