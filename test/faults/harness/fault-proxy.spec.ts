import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { eventually } from '@app/testing/eventually';
import { FaultProxy } from './fault-proxy';

describe('FaultProxy', () => {
  let server: Server;
  let accepted: Socket[];
  let proxy: FaultProxy;
  let client: Socket;
  let received: string;

  const open = async ({ untilConnected = true } = {}): Promise<Socket> => {
    const { port } = new URL(proxy.through('tcp://somewhere:1'));
    const socket = connect({ port: Number(port), host: '127.0.0.1' });
    socket.on('error', () => undefined);
    if (untilConnected) await once(socket, 'connect');
    return socket;
  };

  /** An echo server: an answer shows that both directions work. */
  beforeEach(async () => {
    accepted = [];
    server = createServer((socket) => {
      accepted.push(socket);
      socket.on('error', () => undefined);
      socket.pipe(socket);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    proxy = await FaultProxy.start({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
    client = await open();
    received = '';
    client.on('data', (bytes) => (received += bytes.toString()));
    client.write('a');
    await eventually(() => received === 'a');
  });
  afterEach(async () => {
    client.destroy();
    await proxy.close();
    for (const socket of accepted) socket.destroy();
    server.close();
    await once(server, 'close');
  });

  const echo = async (text: string) => {
    const start = performance.now();
    const before = received;
    client.write(text);
    await eventually(() => received === before + text);
    return performance.now() - start;
  };

  it('passes bytes and the end of a connection on', async () => {
    const large = 'x'.repeat(3_000_000);
    await echo(large);
    client.end();
    await once(client, 'close');
    await eventually(() => proxy.openLinks === 0);
  });

  it('delays, and keeps the order in spite of the jitter', async () => {
    proxy.change({ latencyMs: 40, jitterMs: 20 });
    const before = received;
    for (const letter of 'bcdefghij') client.write(letter);
    await eventually(() => received === `${before}bcdefghij`);
    expect(await echo('k')).toBeGreaterThanOrEqual(39);
  });

  it('cuts both sides', async () => {
    const ends = Promise.all([once(client, 'close'), once(accepted[0], 'close')]);
    expect(proxy.cut()).toBe(1);
    await ends;
    expect(proxy.openLinks).toBe(0);
  });

  it('resets both sides', async () => {
    const errors = Promise.all([once(client, 'error'), once(accepted[0], 'error')]);
    proxy.cut('reset');
    expect((await errors).map(([error]) => (error as NodeJS.ErrnoException).code)).toEqual(['ECONNRESET', 'ECONNRESET']);
  });

  it('refuses connections until it heals', async () => {
    proxy.refusing = true;
    const refused = await open({ untilConnected: false });
    await once(refused, 'error');
    expect(accepted).toHaveLength(1);
    proxy.heal();
    await open().then((socket) => socket.destroy());
    await eventually(() => accepted.length === 2);
  });

  it('stalls with the sockets open, and later passes on the held bytes', async () => {
    proxy.stall();
    client.write('b');
    const second = await open();
    second.write('c');
    await eventually(() => proxy.openLinks === 2);
    expect(received).toBe('a');
    expect(client.destroyed).toBe(false);
    proxy.heal();
    await eventually(() => received === 'ab');
    second.destroy();
  });

  it('stalls one way only', async () => {
    let arrived = '';
    accepted[0].on('data', (bytes) => (arrived += bytes.toString()));
    proxy.stall('toClient');
    client.write('b');
    await eventually(() => arrived.endsWith('b'));
    expect(received).toBe('a');
    proxy.heal();
    await eventually(() => received === 'ab');
  });

  it('does not show the end of one side to the other through a black hole', async () => {
    proxy.stall();
    client.destroy();
    await once(client, 'close');
    expect(accepted[0].destroyed).toBe(false);
    proxy.heal();
    await once(accepted[0], 'close');
  });

  it('can lose the connections that were stalled, while new ones work', async () => {
    proxy.stall();
    client.write('b');
    proxy.heal('lose');
    client = await open();
    client.on('data', (bytes) => (received += bytes.toString()));
    await echo('c');
    expect(received).toBe('ac');
  });

  it('slices', async () => {
    const sizes: number[] = [];
    accepted[0].on('data', (bytes) => sizes.push(bytes.length));
    proxy.change({ sliceBytes: 1 }, 'toServer');
    await echo('bcdefgh');
    expect(sizes.length).toBeGreaterThan(1);
  });

  it('shows the bytes of each direction, and ends or holds the connection in front of them', async () => {
    const seen: string[] = [];
    proxy.inspector = (bytes, direction, link) => {
      seen.push(`${direction} ${bytes.toString()} ${link.note ?? ''}`.trim());
      link.note = 'seen';
      return direction === 'toClient' ? 'hold' : 'pass';
    };
    client.write('b');
    await eventually(() => seen.length === 2);
    expect(seen).toEqual(['toServer b', 'toClient b seen']);
    expect(received).toBe('a');
    proxy.heal();
    await eventually(() => received === 'ab');
    proxy.inspector = (_bytes, direction) => (direction === 'toClient' ? 'cut' : 'pass');
    client.write('c');
    await once(client, 'close');
    expect(received).toBe('ab');
  });
});
