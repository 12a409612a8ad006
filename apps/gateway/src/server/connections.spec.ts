import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, createServer as createListener, type AddressInfo } from 'node:net';
import { pino } from 'pino';
import { eventually } from '@app/testing/eventually';
import { NestLogger } from '@app/runtime/logger';
import { Connections } from './connections';
import { SERVER_LIMITS } from './server-limits';

const MEBIBYTE = 1024 * 1024;

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

  it('stops reading a connection that owes answers, also when its next request has a body', async () => {
    const server = createServer();
    const sockets: IncomingMessage['socket'][] = [];
    // Nothing is answered.
    server.on('request', ({ socket }) => sockets.push(socket));
    new Connections(SERVER_LIMITS, new NestLogger(pino({ enabled: false }))).watch(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    try {
      const size = 64 * MEBIBYTE;
      client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(SERVER_LIMITS.maxOwed + 1));
      client.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${size}\r\n\r\n`);
      await eventually(() => sockets.length === SERVER_LIMITS.maxOwed);
      client.write(Buffer.alloc(size, ' '));
      // What the kernel takes without a reader is far less.
      await expect(eventually(() => sockets[0].bytesRead > 32 * MEBIBYTE, 1000)).rejects.toThrow();
      expect(sockets[0].bytesRead).toBeLessThan(MEBIBYTE);
    } finally {
      client.destroy();
      sockets[0]?.destroy();
      server.close();
    }
  });

  it('closes what is not read after the close of the server, on connections of another listening socket, too', async () => {
    const server = createServer();
    const responses: ServerResponse[] = [];
    server.on('request', (_, response) => responses.push(response));
    const connections = new Connections({ ...SERVER_LIMITS, checkEveryMs: 10 }, new NestLogger(pino({ enabled: false })));
    connections.watch(server);
    const other = createListener((socket) => server.emit('connection', socket)).listen(0, '127.0.0.1');
    await Promise.all([once(other, 'listening'), once(server.listen(0, '127.0.0.1'), 'listening')]);
    const clients = Array.from({ length: 2 }, () => connect((other.address() as AddressInfo).port, '127.0.0.1').pause());
    try {
      for (const client of clients) client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
      await eventually(() => responses.length === 2);
      const closed = once(server, 'close');
      server.close();
      await closed;
      connections.closeSlow();
      for (const response of responses) {
        // More than the socket buffers hold.
        response.end(Buffer.alloc(16 * MEBIBYTE));
        await eventually(() => response.req.socket.destroyed);
      }
    } finally {
      for (const client of clients) client.destroy();
      other.close();
    }
  });
});
