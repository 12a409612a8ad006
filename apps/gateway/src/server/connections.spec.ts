import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, createServer as createListener, type AddressInfo, type Socket } from 'node:net';
import { pino } from 'pino';
import { eventually } from '@app/testing/eventually';
import { NestLogger } from '@app/runtime/logger';
import { Connections } from './connections';
import { SERVER_LIMITS, type ServerLimits } from './server-limits';

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
      // The kernel takes far less without a reader.
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
        await eventually(() => response.req.socket.destroyed, 10_000);
      }
    } finally {
      for (const client of clients) client.destroy();
      other.close();
    }
  });

  it('closes what is idle after an answer that had begun before the close of the server', async () => {
    const server = createServer();
    const connections = new Connections(SERVER_LIMITS, new NestLogger(pino({ enabled: false })));
    connections.watch(server);
    const asked = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1').resume();
    try {
      client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
      const [, response] = await asked;
      response.setHeader('content-length', 2).write('a');
      connections.closeIdle();
      server.close();
      await once(response.end('b'), 'close');
      expect(response.req.socket.destroyed).toBe(false);
      connections.closeSlow();
      expect(response.req.socket.destroyed).toBe(true);
    } finally {
      client.destroy();
    }
  });

  describe('when the requests of all connections take much memory', () => {
    const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
    const manyHeaders = REQUEST.replace('host', `${'ab: cd\r\n'.repeat(500)}host`);
    let server: Server;
    let clients: Socket[];
    let responses: ServerResponse[];
    let parsed: number;
    let accepted: number;
    const open = async (count: number) => {
      const { port } = server.address() as AddressInfo;
      const opened = Array.from({ length: count }, () =>
        connect(port, '127.0.0.1')
          .on('error', () => undefined)
          .resume(),
      );
      clients.push(...opened);
      // One connection is accepted in one iteration of the event loop.
      await eventually(() => accepted === clients.length);
      return opened;
    };
    const start = async (limits: Partial<ServerLimits>) => {
      [clients, responses, parsed, accepted] = [[], [], 0, 0];
      server = createServer((_, response) => void responses.push(response));
      new Connections({ ...SERVER_LIMITS, ...limits }, new NestLogger(pino({ enabled: false }))).watch(server);
      server.prependListener('request', () => parsed++).on('connection', () => accepted++);
      await once(server.listen(0, '127.0.0.1'), 'listening');
    };
    const send = async (sockets: Socket[], bytes: string, requests = 1) => {
      const expected = parsed + sockets.length * requests;
      for (const socket of sockets) socket.write(bytes.repeat(requests));
      await eventually(() => parsed === expected);
      // Until closed connections are reported.
      await new Promise(setImmediate);
    };
    const areOpen = () => responses.filter(({ req }) => !req.socket.destroyed).length;
    afterEach(() => {
      for (const client of clients) client.destroy();
      server.close();
    });

    it.each([
      ['many requests', REQUEST, 8],
      ['many headers', manyHeaders, 1],
      ['large headers', REQUEST.replace('x', 'x'.repeat(15_000)), 1],
    ])('closes those with most of it, because of %s, and no others', async (_, bytes, requests) => {
      await start({ maxOwedBytes: 100_000 });
      const [usual, greedy] = [await open(20), await open(30)];
      await send(usual, REQUEST);
      expect(areOpen()).toBe(usual.length);
      await send(greedy, bytes, requests);
      expect(responses.slice(0, usual.length).some(({ req }) => req.socket.destroyed)).toBe(false);
      expect(areOpen()).toBeLessThan(usual.length + (greedy.length * requests) / 5);
    });

    it('closes none with a usual request when those above the mean were too few', async () => {
      await start({ maxOwedBytes: 100_000 });
      const [medium, [huge], [usual]] = [await open(22), await open(1), await open(1)];
      await send(medium, REQUEST.replace('x', 'x'.repeat(1750)));
      huge.write(REQUEST.replace('x', 'x'.repeat(15_000)));
      usual.write(REQUEST);
      await eventually(() => parsed === 24);
      await new Promise(setImmediate);
      const hosts = responses.flatMap(({ req }) => (req.socket.destroyed ? [] : (req.headers.host ?? '')));
      expect([hosts.includes('x'), hosts.some((host) => host.length === 15_000)]).toEqual([true, false]);
    });

    it('counts requests that are answered until they have arrived', async () => {
      await start({ maxOwedBytes: 100_000 });
      const arriving = REQUEST.replace('\r\n\r\n', '\r\ncontent-length: 1\r\n\r\n');
      const sockets = await open(60);
      for (let sent = 0; sent < sockets.length; sent += 20) {
        await send(sockets.slice(sent, sent + 20), arriving);
        const unanswered = responses.slice(sent).filter(({ req }) => !req.socket.destroyed);
        await Promise.all(unanswered.map((response) => once(response.end(), 'close')));
      }
      expect(areOpen()).toBeLessThan(50);
      const left = responses.filter(({ req }) => !req.socket.destroyed);
      const whole = left.map(({ req }) => once(req, 'close'));
      for (const socket of sockets) socket.write('x');
      await Promise.all(whole);
      await send(await open(20), REQUEST);
      expect(areOpen()).toBe(left.length + 20);
    });

    it('closes none while answers make room', async () => {
      await start({ maxOwedBytes: 100_000 });
      const sockets = await open(20);
      for (let time = 0; time < 10; time++) {
        await send(sockets, REQUEST);
        expect(areOpen()).toBe(sockets.length);
        await Promise.all(responses.splice(0).map((response) => once(response.end(), 'close')));
      }
      await send(sockets, REQUEST);
      sockets.splice(10).forEach((socket) => socket.destroy());
      await eventually(() => areOpen() === sockets.length);
      await send(sockets, REQUEST, 2);
      expect(areOpen()).toBe(3 * sockets.length);
    });

    it('reads the rest in later iterations of the event loop', async () => {
      const most = 100;
      await start({ maxReadBytes: most * 2500, maxOwed: 50 });
      const [sockets, each] = [await open(40), 40];
      for (const socket of sockets) socket.write(REQUEST.repeat(each));
      const counts: number[] = [];
      while (parsed < sockets.length * each && counts.length < 10_000) {
        const before = parsed;
        await new Promise(setImmediate);
        counts.push(parsed - before);
      }
      expect(parsed).toBe(sockets.length * each);
      expect(Math.max(...counts)).toBeLessThan(most + each);
    });
  });
});
