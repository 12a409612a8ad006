import type { Channel } from 'amqplib';
import { createTestBroker, type TestBroker } from '@app/testing/broker';
import { BrokerLinks } from '@app/testing/broker-links';
import { eventually } from '@app/testing/eventually';
import { RabbitChannel, type ChannelOptions } from './channel';
import { RabbitConnection } from './connection';
import { silent } from './observer';

/** A method frame, its size, and the two numbers of channel.open. */
const CHANNEL_OPEN = Buffer.from([0, 20, 0, 10]);

jest.setTimeout(40_000);

describe('a connection to one of several nodes', () => {
  let broker: TestBroker;
  let links: BrokerLinks;
  let connections: RabbitConnection[];
  let lines: string[];

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
  });
  afterEach(async () => {
    links.heal();
    await Promise.all(connections.map((connection) => connection.close()));
    const password = decodeURIComponent(new URL(broker.url).password);
    expect(lines.join('\n')).not.toContain(password);
  });

  const connectionTo = (url: string) => {
    const log = (level: string, fields: object) => void lines.push(JSON.stringify({ level, ...fields }));
    const connection = new RabbitConnection({ url, name: 'test' }, { ...silent, log });
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
  const opened = async (options: Partial<ChannelOptions<Channel>> = {}) => {
    const connection = connectionTo(links.url);
    const channel = channelOf(connection, options);
    expect(await channel.whenReady(10_000)).toBe(true);
    return { connection, channel, node: links.nodeOf(connection) };
  };

  it('spreads the connections of a process evenly', async () => {
    await Promise.all(Array.from({ length: 9 }, () => opened()));
    expect(links.proxies.map(({ openLinks }) => openLinks)).toEqual([3, 3, 3]);
  });

  it('has a usable channel at another node within 1 s of the end of its node', async () => {
    const { connection, channel, node } = await opened();
    const killedAt = performance.now();
    links.kill(node);
    await eventually(() => channel.check() !== undefined, 1000, 1);
    expect(await channel.whenReady(10_000)).toBe(true);
    expect(performance.now() - killedAt).toBeLessThan(1000);
    expect(links.nodeOf(connection)).not.toBe(node);
    expect(lines.at(-1)).toContain(`"msg":"connected to the broker","connection":"test","address":"${connection.address}"`);
  });

  it('waits 2.5 s, and not 10 s, for a node that accepts and does not answer, while there is another', async () => {
    const { connection, channel, node } = await opened();
    const [other, third] = links.proxies.filter((proxy) => proxy !== node);
    other.stall();
    links.kill(third);
    const killedAt = performance.now();
    links.kill(node);
    node.heal();
    await eventually(() => channel.check() !== undefined, 1000, 1);
    expect(await channel.whenReady(9000)).toBe(true);
    expect(performance.now() - killedAt).toBeLessThan(5000);
    expect(links.nodeOf(connection)).toBe(node);
  });

  it('without any node it names each one and the reason, says which it waits for, and tries them all again', async () => {
    const { channel, connection } = await opened();
    for (const proxy of links.proxies) links.kill(proxy);
    await eventually(() => lines.some((line) => line.includes('no connection: ')));
    const line = lines.find((one) => one.includes('no connection: '));
    for (const proxy of links.proxies) expect(line).toMatch(new RegExp(`${links.address(proxy)}: .*ECONNRESET`));
    const all = links.proxies.map((proxy) => links.address(proxy)).join(', ');
    await eventually(() => channel.check() === `not connected to the broker: waiting to connect to ${all}`, 10_000, 1);
    links.heal();
    expect(await channel.whenReady(10_000)).toBe(true);
    expect(channel.check()).toBeUndefined();
    expect(links.proxies.map((proxy) => links.address(proxy))).toContain(connection.address);
  });

  it('gives up a node at which no channel opens, and says so meanwhile', async () => {
    const connection = connectionTo(links.url);
    await eventually(() => connection.state === 'up');
    const node = links.nodeOf(connection);
    node.inspector = (bytes, direction) => (direction === 'toServer' && bytes.includes(CHANNEL_OPEN) ? 'hold' : 'pass');
    const channel = channelOf(connection, { name: 'users.calls', timeoutMs: 500 });
    await eventually(() => channel.check() === `users.calls: opening a channel at ${links.address(node)}`);
    expect(await channel.whenReady(10_000)).toBe(true);
    expect(links.nodeOf(connection)).not.toBe(node);
    expect(lines.join()).toContain(`users.calls: opening a channel at ${links.address(node)} took over 0.5 s`);
  });

  it('keeps a connection whose other channels work while one is not set up in time', async () => {
    const { connection, channel } = await opened();
    const model = connection.current;
    let attempts = 0;
    // As while the node with a queue is away.
    const slow = channelOf(connection, {
      name: 'slow',
      timeoutMs: 200,
      setup: () => (++attempts < 3 ? new Promise<void>(() => undefined) : Promise.resolve()),
    });
    await eventually(() => slow.check() === `slow: setting up the channel at ${connection.address}`);
    expect(await slow.whenReady(10_000)).toBe(true);
    expect(attempts).toBe(3);
    expect(connection.current).toBe(model);
    expect(channel.check()).toBeUndefined();
  });

  it('gives up a node at which the only channel is not set up in time', async () => {
    const connection = connectionTo(links.url);
    await eventually(() => connection.state === 'up');
    const { address } = connection;
    const channel = channelOf(connection, {
      timeoutMs: 200,
      setup: () => (connection.address === address ? new Promise<void>(() => undefined) : Promise.resolve()),
    });
    expect(await channel.whenReady(10_000)).toBe(true);
    expect(connection.address).not.toBe(address);
  });
});
