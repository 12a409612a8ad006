import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { pino } from 'pino';
import { NestLogger } from '@app/runtime/logger';
import { Connections } from './connections';
import { SERVER_LIMITS } from './server-limits';

describe(Connections.name, () => {
  it('aborts requests without the stacks of their errors, and leaves the stacks of others', async () => {
    const before = Error.stackTraceLimit;
    const server = createServer();
    const arrived: IncomingMessage[] = [];
    const aborted: number[] = [];
    const calls = 3;
    const all = new Promise<void>((resolve) => {
      server.on('request', (request) => {
        request.once('aborted', () => aborted.push(Error.stackTraceLimit));
        if (arrived.push(request) === calls) resolve();
      });
    });
    new Connections(SERVER_LIMITS, new NestLogger(pino({ enabled: false }))).watch(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    try {
      const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
      client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(calls));
      await all;
      const closed = once(arrived[0].socket, 'close');
      arrived[0].socket.destroy();
      await closed;
      client.destroy();
      expect(aborted).toEqual(Array.from({ length: calls }, () => 0));
      expect(Error.stackTraceLimit).toBe(before);
    } finally {
      server.close();
    }
  });
});
