import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { NestLogger } from '@app/runtime/logger';
import { Readiness } from '@app/runtime/readiness';
import { TooManyRequests } from './too-many-requests';

describe(TooManyRequests.name, () => {
  it('answers after the other sockets of the turn, so that refused callers cannot starve timers and publishing', async () => {
    const tooMany = new TooManyRequests(new NestLogger(pino({ enabled: false })), new Readiness());
    let answeredAtOnce: boolean | undefined;
    const server = createServer((_, response) => {
      tooMany.refuse(response, 'request', 'in_flight');
      // Runs after everything that this socket's turn can run.
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
});
