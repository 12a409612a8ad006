import type { Channel } from 'amqplib';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { BrokerLinks } from '@app/testing/broker/broker-links';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { RabbitChannel, type ChannelOptions } from './channel';
import { RabbitConnection } from './connection';
import { isClosed } from './open-connection';
import { NotYet } from './opened-channel';
import { silent } from './observer';

/** A method frame, its size, and the two numbers of channel.open. */
const CHANNEL_OPEN = Buffer.from([0, 20, 0, 10]);

describe('a connection to one of several nodes', () => {
  let broker: TestBroker;
  let links: BrokerLinks;
  let connections: RabbitConnection[];
  let lines: string[];
  let connectedAt: number[];
  /** Failed rounds of all connections. */
  let rounds: number;

  beforeAll(async () => {
    broker = await createTestBroker();
    links = await BrokerLinks.to(broker.url, 3);
  });
  afterAll(async () => {
    await links?.close();
    await broker?.drop();
  });
  beforeEach(() => {
    connections = [];
    lines = [];
    connectedAt = [];
    rounds = 0;
  });
  afterEach(async () => {
    links.heal();
    await Promise.all(connections.map((connection) => connection.close()));
    const password = decodeURIComponent(new URL(broker.url).password);
    expect(lines.join('\n')).not.toContain(password);
  });

  /** Each one as of another process. */
  const connectionTo = (url: string, moveEveryMs?: number, preference = connections.length) => {
    const connected = (name: string, address: string, up: boolean) => void (up && connectedAt.push(performance.now()));
    const reconnecting = () => void rounds++;
    const log = (level: string, fields: object) => void lines.push(JSON.stringify({ level, ...fields }));
    const connection = new RabbitConnection(
      { url, name: 'test', moveEveryMs, preference },
      { ...silent, log, connected, reconnecting },
    );
    connections.push(connection);
    connection.start();
    return connection;
  };
  const channelOf = (connection: RabbitConnection, options: Partial<ChannelOptions<Channel>> = {}) =>
    new RabbitChannel<Channel>(connection, {
      name: 'test',
      open: (model) => model.createChannel(),
      setup: async () => undefined,
      ...options,
    });
  const opened = async (options: Partial<ChannelOptions<Channel>> = {}, moveEveryMs?: number, preference?: number) => {
    const connection = connectionTo(links.url, moveEveryMs, preference);
    const channel = channelOf(connection, options);
    expect(await channel.whenReady(20_000)).toBe(true);
    return { connection, channel, node: links.nodeOf(connection) };
  };

  it('opens another channel at once when a queue has no leader yet, and says so once', async () => {
    const MOST = 8;
    let setups = 0;
    let first = 0;
    await opened({
      setup: async () => {
        first ||= performance.now();
        if (++setups <= MOST) throw new NotYet('no leader yet');
      },
    });
    // Waits that double from 100 ms, and are half as long by chance, would take longer.
    expect(performance.now() - first).toBeLessThan((100 * (2 ** MOST - 1)) / 2);
    expect(lines.filter((line) => line.includes('no leader yet'))).toEqual([expect.stringContaining('"warn"')]);
  });

  it('spreads processes evenly, and keeps the connections of one at one node', async () => {
    await Promise.all(Array.from({ length: 9 }, () => opened()));
    expect(links.proxies.map(({ openLinks }) => openLinks)).toEqual([3, 3, 3]);
    await Promise.all(Array.from({ length: 3 }, () => opened({}, undefined, 0)));
    expect(links.proxies.map(({ openLinks }) => openLinks)).toEqual([6, 3, 3]);
  });

  it('has a usable channel at another node within 1 s of the end of its node', async () => {
    const tookMs: number[] = [];
    // A busy machine delays some of them.
    await eventually(async () => {
      const { connection, channel, node } = await opened();
      const killedAt = performance.now();
      links.kill(node);
      await eventually(() => channel.check() !== undefined, undefined, 1);
      expect(await channel.whenReady(20_000)).toBe(true);
      tookMs.push(performance.now() - killedAt);
      expect(links.nodeOf(connection)).not.toBe(node);
      expect(lines.at(-1)).toContain(`"msg":"connected to the broker","connection":"test","address":"${connection.address}"`);
      links.heal();
      return Math.min(...tookMs) < 1000;
    }, 20_000);
  });

  it('waits 2.5 s, and not 10 s, for a node that accepts and does not answer, while there is another', async () => {
    const { connection, channel, node } = await opened();
    const [other, third] = links.proxies.filter((proxy) => proxy !== node);
    other.stall();
    links.kill(third);
    const killedAt = performance.now();
    links.kill(node);
    node.heal();
    await eventually(() => channel.check() !== undefined, undefined, 1);
    expect(await channel.whenReady(20_000)).toBe(true);
    expect(performance.now() - killedAt).toBeLessThan(10_000);
    expect(links.nodeOf(connection)).toBe(node);
  });

  it('without any node it names each one and the reason, says which it waits for, and tries them all again', async () => {
    const { channel, connection } = await opened();
    for (const proxy of links.proxies) links.kill(proxy);
    await eventually(() => lines.some((line) => line.includes('no connection: ')));
    const line = lines.find((one) => one.includes('no connection: '));
    for (const proxy of links.proxies) expect(line).toMatch(new RegExp(`${links.address(proxy)}: .*ECONNRESET`));
    const all = links.proxies.map((proxy) => links.address(proxy)).join(', ');
    const waiting = `not connected to the broker: waiting to connect to ${all} (`;
    await eventually(() => channel.check()?.startsWith(waiting) && channel.check()?.includes('ECONNRESET'), undefined, 1);
    links.heal();
    expect(await channel.whenReady(20_000)).toBe(true);
    expect(channel.check()).toBeUndefined();
    expect(links.proxies.map((proxy) => links.address(proxy))).toContain(connection.address);
  });

  it('says the reason of the latest failure until it connects, and logs the first of many failures only', async () => {
    const url = new URL(broker.url);
    const wrong = 'a wrong password';
    url.password = wrong;
    const channel = channelOf(connectionTo(url.href));
    await eventually(() => rounds >= 4);
    expect(channel.check()).toMatch(/^not connected to the broker: .*ACCESS_REFUSED/);
    expect(lines.filter((line) => line.includes('no connection: '))).toEqual([expect.stringContaining('"attempts":1')]);
    expect(`${channel.check()} ${lines.join()}`).not.toContain(wrong);
  });

  it('gives up a node at which no channel opens, and says so meanwhile', async () => {
    const connection = connectionTo(links.url);
    await eventually(() => connection.state === 'up');
    const node = links.nodeOf(connection);
    node.inspector = (bytes, direction) => (direction === 'toServer' && bytes.includes(CHANNEL_OPEN) ? 'hold' : 'pass');
    const channel = channelOf(connection, { name: 'users.calls', timeoutMs: 1500 });
    await eventually(() => channel.check() === `users.calls: opening a channel at ${links.address(node)}`);
    expect(await channel.whenReady(20_000)).toBe(true);
    expect(links.nodeOf(connection)).not.toBe(node);
    expect(lines.join()).toContain(`users.calls: opening a channel at ${links.address(node)} took over 1.5 s`);
  });

  it('keeps a connection whose other channels work while one is not set up in time', async () => {
    const { connection, channel } = await opened();
    const model = connection.current;
    let attempts = 0;
    // As while the node with a queue is away.
    const slow = channelOf(connection, {
      name: 'slow',
      setupMs: 500,
      setup: () => (++attempts < 3 ? new Promise<void>(() => undefined) : Promise.resolve()),
    });
    await eventually(() => slow.check() === `slow: setting up the channel at ${connection.address}`);
    expect(await slow.whenReady(20_000)).toBe(true);
    expect(attempts).toBe(3);
    expect(connection.current).toBe(model);
    expect(channel.check()).toBeUndefined();
  });

  it('gives up a node at which the only channel is not set up in time', async () => {
    const connection = connectionTo(links.url);
    await eventually(() => connection.state === 'up');
    const { address } = connection;
    const channel = channelOf(connection, {
      setupMs: 200,
      setup: () => (connection.address === address ? new Promise<void>(() => undefined) : Promise.resolve()),
    });
    expect(await channel.whenReady(20_000)).toBe(true);
    expect(connection.address).not.toBe(address);
  });

  it('gives up a node from which nothing has arrived for 8 s', async () => {
    const { connection, channel, node } = await opened();
    node.stall();
    const stalledAt = performance.now();
    await eventually(() => channel.check() !== undefined, undefined, 1);
    const noticedAfter = performance.now() - stalledAt;
    // A heartbeat may have arrived just before.
    expect(noticedAfter).toBeGreaterThan(5000);
    expect(noticedAfter).toBeLessThan(11_000);
    expect(await channel.whenReady(20_000)).toBe(true);
    expect(links.nodeOf(connection)).not.toBe(node);
    expect(lines.join()).toContain('no sign of life for 8 s');
  });

  const drain = async () => undefined;
  const spread = (each: number) => links.proxies.every(({ openLinks }) => openLinks === each);

  it('moves back to a node that has returned, one connection of the process a second', async () => {
    const timers = jest.requireActual<{ setTimeout: (ms: number) => Promise<void> }>('node:timers/promises');
    const waits = jest.spyOn(timers, 'setTimeout');
    const all = await Promise.all(Array.from({ length: 6 }, () => opened({ drain }, 100)));
    expect(spread(2)).toBe(true);
    const [left, ...others] = links.proxies;
    for (const proxy of others) links.kill(proxy);
    await eventually(() => left.openLinks === 6 && all.every(({ channel }) => channel.check() === undefined));
    connectedAt = [];
    let interruptions = 0;
    for (const { channel } of all) channel.on('lost', () => interruptions++);
    links.heal();
    await eventually(() => spread(2));
    // Node 24 writes a warning to stderr for a negative one, where a service writes its log.
    expect(waits.mock.calls.filter(([ms]) => ms < 0)).toEqual([]);
    waits.mockRestore();
    expect(connectedAt).toHaveLength(4);
    // Three waits of 1 s between the first and the last. Each move itself takes some time, and on a busy machine the first one takes longest.
    expect(connectedAt[3] - connectedAt[0]).toBeGreaterThan(2000);
    expect(interruptions).toBe(0);
  });

  it('keeps the earlier connection for work of one channel, although another has no more to wait for', async () => {
    const { open: letGo, opened: gone } = gate();
    const { connection, channel, node } = await opened({ drain: () => gone }, 100);
    // As after a nack.
    const other = channelOf(connection, { drain: () => Promise.reject(new Error('message nacked')) });
    const isElsewhere = () => links.nodeOf(connection) !== node && channel.check() === undefined && other.check() === undefined;
    links.kill(node);
    await eventually(() => connection.state === 'up' && isElsewhere());
    const { current: earlier } = channel;
    const { current: model } = connection;
    links.heal();
    await eventually(() => links.nodeOf(connection) === node);
    await earlier!.checkExchange('amq.topic');
    letGo();
    await eventually(() => isClosed(model!));
    expect(channel.check()).toBeUndefined();
  });

  it('closes at once while it connects again, also when an earlier connection is still needed', async () => {
    const { open: letGo, opened: gone } = gate();
    const { connection, channel, node } = await opened({ drain: () => gone }, 100);
    const elsewhere = links.proxies.filter((proxy) => proxy !== node);
    links.kill(node);
    await eventually(() => connection.state === 'up' && links.nodeOf(connection) !== node && channel.check() === undefined);
    links.heal();
    await eventually(() => links.nodeOf(connection) === node);
    for (const proxy of elsewhere) links.kill(proxy);
    node.stall();
    node.cut('reset');
    await eventually(() => channel.check()?.includes(`connecting to ${links.address(node)}`));
    const since = performance.now();
    await connection.close();
    expect(performance.now() - since).toBeLessThan(5000);
    letGo();
  });

  it('stays where it is while a channel cannot be set up at the node that has returned', async () => {
    let attempts = 0;
    const { connection, channel, node } = await opened(
      { drain, setup: async () => void (attempts++ > 1 && (await Promise.reject(new Error('not yet')))) },
      100,
    );
    links.kill(node);
    await eventually(() => connection.state === 'up' && links.nodeOf(connection) !== node && channel.check() === undefined);
    const elsewhere = links.nodeOf(connection);
    links.heal();
    await eventually(() => attempts > 3);
    expect(links.nodeOf(connection)).toBe(elsewhere);
    expect(channel.check()).toBeUndefined();
    expect(lines.join()).toContain(`not moved to ${links.address(node)}, which is back: its channels could not be set up`);
  });
});
