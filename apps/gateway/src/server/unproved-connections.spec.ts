import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { connect, Socket, type AddressInfo } from 'node:net';
import { pino } from 'pino';
import { eventually } from '@app/testing/eventually';
import { NestLogger } from '@app/runtime/logger';
import { requestsInPieces } from './body-pieces';
import { Connections } from './connections';
import { SERVER_LIMITS } from './server-limits';
import { SmallPieces } from './small-pieces';
import { MOST_PARSED, UnprovedConnections } from './unproved-connections';

const CLIENTS = 40;
const EACH = 40;
const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const iteration = () => new Promise(setImmediate);

describe('what arrives at once on many connections', () => {
  const logger = new NestLogger(pino({ enabled: false }));
  let server: Server;
  let clients: Socket[];
  let parsed: number;
  afterEach(() => {
    clients.forEach((client) => client.destroy());
    server.close();
  });

  /** Connections on which one request was answered. */
  async function start(isProved = false): Promise<void> {
    const unproved = new UnprovedConnections();
    const pieces = new SmallPieces(logger, unproved, () => undefined);
    const arrived = (request: IncomingMessage, bytes: number) => {
      parsed++;
      pieces.arrived(request, bytes);
    };
    let answered = 0;
    // On a busy machine a connection waits for more than the default of 5 s.
    server = createServer({ IncomingMessage: requestsInPieces(arrived), keepAliveTimeout: 60_000 }, (request, response) => {
      if (isProved) connections.proved(request.socket);
      request.resume();
      response.once('close', () => answered++).end();
    });
    const connections = new Connections(SERVER_LIMITS, logger, unproved);
    connections.watch(server);
    server.prependListener('request', () => parsed++);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    clients = Array.from({ length: CLIENTS }, () => connect(port, '127.0.0.1').resume());
    clients.forEach((client) => client.write(REQUEST));
    await eventually(() => answered === CLIENTS);
  }

  /** @returns the requests and pieces of bodies in each iteration, until all have come */
  async function parsedAtOnce(all: number): Promise<number[]> {
    const counts: number[] = [];
    for (let sum = 0; sum < all && counts.length < 10_000; sum += parsed) {
      parsed = 0;
      await iteration();
      counts.push(parsed);
    }
    return counts;
  }

  it('is parsed in several iterations: requests', async () => {
    await start();
    clients.forEach((client) => client.write(REQUEST.repeat(EACH)));
    // The next connections may send twice as much as those before, which sent little.
    expect(Math.max(...(await parsedAtOnce(CLIENTS * EACH)))).toBeLessThan(2 * MOST_PARSED);
  });

  it('is parsed in several iterations: small pieces of bodies', async () => {
    await start();
    const pieces = 10_000;
    const head = 'POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n';
    const body = `${head}${'1\r\nx\r\n'.repeat(pieces)}0\r\n\r\n`;
    clients.forEach((client) => client.write(body));
    expect(Math.max(...(await parsedAtOnce(CLIENTS * pieces)))).toBeLessThan((CLIENTS / 4) * pieces);
  });

  it('is parsed in one iteration on connections that have proved a key', async () => {
    await start(true);
    // Again when the system of a busy machine delivers the bytes later.
    await eventually(async () => {
      clients.forEach((client) => client.write(REQUEST.repeat(EACH)));
      return Math.max(...(await parsedAtOnce(CLIENTS * EACH))) === CLIENTS * EACH;
    });
  });
});

describe(UnprovedConnections.name, () => {
  let connections: UnprovedConnections;
  beforeEach(() => (connections = new UnprovedConnections()));

  const opened = (address = '192.0.2.1') => {
    const socket = Object.defineProperty(new Socket().resume(), 'remoteAddress', { value: address });
    connections.opened(socket);
    return socket;
  };
  const parse = (socket: Socket, count: number) => {
    for (let one = 0; one < count; one++) connections.arrived(socket);
  };
  const read = (sockets: Socket[]) => sockets.filter((socket) => !socket.isPaused()).length;

  it('reads all while little is parsed in an iteration', async () => {
    const [first, ...others] = Array.from({ length: 10 }, () => opened());
    for (let time = 0; time < 3; time++) {
      parse(first, MOST_PARSED - 1);
      expect(read(others)).toBe(9);
      await iteration();
    }
  });

  it('reads the others later, first the latest and another one, and more in each iteration that parses little', async () => {
    const [first, ...others] = Array.from({ length: 20 }, () => opened());
    parse(first, MOST_PARSED);
    expect([read([first]), read(others)]).toEqual([1, 0]);
    const counts: number[] = [];
    while (read(others) < others.length) {
      await iteration();
      counts.push(read(others));
    }
    expect(counts).toEqual([2, 5, 10, 19]);
  });

  it('reads the first and the latest while each of them sends much, and lets none of them wait twice', async () => {
    const [first, ...others] = Array.from({ length: 7 }, () => opened());
    parse(first, MOST_PARSED);
    for (let number = 0; number < 3; number++) {
      await iteration();
      const now = [others[number], others[5 - number]];
      expect(others.filter((socket) => !socket.isPaused())).toEqual(now);
      // They have not been read when another one sends much.
      parse(first, MOST_PARSED);
      expect(read(now)).toBe(2);
      for (const socket of now) socket.pause();
    }
  });

  it('lets addresses take turns', async () => {
    const [first, ...many] = Array.from({ length: 10 }, (_, number) => opened(number === 4 ? '192.0.2.2' : '192.0.2.1'));
    parse(first, MOST_PARSED);
    await iteration();
    expect([read(many), read([many[3]])]).toEqual([2, 1]);
  });

  it('reads a connection at once that has proved a key, and gives no turn to those that have ended', async () => {
    const [first, proved, ended, third, fourth, last] = Array.from({ length: 6 }, () => opened());
    parse(first, MOST_PARSED);
    connections.left(proved);
    expect(read([proved, third, fourth, last])).toBe(1);
    for (const socket of [ended, last]) {
      socket.destroy();
      connections.left(socket);
    }
    await iteration();
    expect(read([third, fourth])).toBe(2);
    parse(first, MOST_PARSED);
    expect(read([proved])).toBe(1);
  });

  it('does not count what connections with a proved key send', async () => {
    const [proved, other] = [opened(), opened()];
    connections.left(proved);
    parse(proved, MOST_PARSED);
    expect(read([other])).toBe(1);
  });

  it('stops a connection also when Node has begun to resume it, or does so later', async () => {
    const events: string[] = [];
    const socket = new Socket();
    // As Node, which reads a socket between these events.
    for (const event of ['pause', 'resume']) socket.on(event, () => events.push(event));
    const first = opened();
    connections.opened(socket.resume());
    parse(first, MOST_PARSED);
    await new Promise(process.nextTick);
    expect(events).toEqual(['pause', 'resume', 'pause']);
    socket.resume();
    await new Promise(process.nextTick);
    expect(events.slice(3)).toEqual(['resume', 'pause']);
    await eventually(() => events.at(-1) === 'resume');
  });

  it('leaves a connection alone that is not read for another reason', async () => {
    const [first, paused] = [opened(), opened().pause()];
    parse(first, MOST_PARSED);
    for (let time = 0; time < 2; time++) await iteration();
    expect(read([paused])).toBe(0);
  });
});
