import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { MOST_STRANGERS_WAITING, refuseUnread } from './refuse-unread';
import type { TooManyRequests } from './too-many-requests';

/** That one address may have alone. */
const MOST_OF_ADDRESS = 0.8 * MOST_STRANGERS_WAITING;

/** No connection is closed. */
const open = { onClosed: () => undefined, owedBy: () => [] };

describe(refuseUnread.name, () => {
  /** Requests of unknown callers that begin in this iteration of the event loop and in the next one. */
  async function begunOf(url: string): Promise<number[]> {
    const begun: IncomingMessage[] = [];
    const server = createServer((request) => begun.push(request));
    refuseUnread(server, { refusalUnread: () => undefined, isKnown: () => false }, {} as TooManyRequests, open);
    for (let request = 0; request < 20; request++)
      server.emit('request', { url, socket: { destroyed: false } } as IncomingMessage, {} as ServerResponse);
    const counts = [begun.length];
    await new Promise(setImmediate);
    return [...counts, begun.length];
  }

  it('begins four calls of unknown callers in an iteration, and one other request, whose answer may be large', async () => {
    expect(await begunOf('/v1/users/add')).toEqual([4, 8]);
    expect(await begunOf('/docs/swagger-ui-bundle.js')).toEqual([1, 2]);
  });

  it('begins four health checks in an iteration, and refuses none', () => {
    const begun: IncomingMessage[] = [];
    const server = createServer((request) => begun.push(request));
    refuseUnread(server, { refusalUnread: () => undefined, isKnown: () => false }, {} as TooManyRequests, open);
    for (let request = 0; request < MOST_STRANGERS_WAITING + 100; request++)
      server.emit('request', { url: '/health/ready?a', socket: { destroyed: false } } as IncomingMessage, {} as ServerResponse);
    expect(begun).toHaveLength(4);
  });

  it('lets requests of different addresses take turns', async () => {
    const begun: string[] = [];
    const server = createServer(({ socket }) => begun.push(socket.remoteAddress!));
    refuseUnread(server, { refusalUnread: () => undefined, isKnown: () => false }, {} as TooManyRequests, open);
    for (const remoteAddress of [...Array<string>(100).fill('flood'), 'balancer'])
      server.emit(
        'request',
        { url: '/health/ready', socket: { destroyed: false, remoteAddress } } as IncomingMessage,
        {} as ServerResponse,
      );
    await new Promise(setImmediate);
    expect(begun).toContain('balancer');
  });

  it('refuses a further request, but no health check, when calls and other requests of an address together have its share of the room', () => {
    const refused: string[] = [];
    const server = createServer();
    const tooMany = { refuse: (_: unknown, __: unknown, limit: string) => refused.push(limit) } as unknown as TooManyRequests;
    refuseUnread(server, { refusalUnread: () => undefined, isKnown: () => false }, tooMany, open);
    // Four calls and one other request begin.
    const ask = (url: string, remoteAddress = '192.0.2.1') =>
      server.emit(
        'request',
        { url, headers: {}, socket: { destroyed: false, remoteAddress } } as IncomingMessage,
        {} as ServerResponse,
      );
    for (let request = 0; request < MOST_OF_ADDRESS + 8; request++)
      ask(request % 2 ? '/v1/users/add' : '/docs/swagger-ui-bundle.js');
    for (let check = 0; check < 10; check++) ask('/health/ready');
    expect(refused).toEqual(['strangers', 'strangers', 'strangers']);
    ask('/v1/users/add', '192.0.2.2');
    expect(refused).toHaveLength(3);
  });

  it('lets no request of a closed connection wait', () => {
    const server = createServer();
    const left: (() => void)[] = [];
    const refused: string[] = [];
    const tooMany = { refuse: (_: unknown, __: unknown, limit: string) => refused.push(limit) } as unknown as TooManyRequests;
    const connections = { ...open, onClosed: (_: unknown, leave: () => void) => void left.push(leave) };
    refuseUnread(server, { refusalUnread: () => undefined, isKnown: () => false }, tooMany, connections);
    const ask = (count: number) => {
      for (let request = 0; request < count; request++)
        server.emit(
          'request',
          { url: '/docs', headers: {}, socket: { destroyed: false } } as IncomingMessage,
          {} as ServerResponse,
        );
    };
    // One begins.
    ask(1 + MOST_OF_ADDRESS);
    for (const leave of left.splice(0, 10)) leave();
    ask(10);
    expect(refused).toEqual([]);
    ask(1);
    expect(refused).toEqual(['strangers']);
  });
});
