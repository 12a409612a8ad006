import type { BrokerLinks } from '@app/testing/broker/broker-links';
import { eventually } from '@app/testing/eventually';
import { ConnectionBench } from '../../test/connection-bench';
import { SHORT_CONNECT_TIMEOUT_MS } from './open-connection';
import { NotYet } from './opened-channel';

/** A method frame, its size, and the two numbers of channel.open. */
const CHANNEL_OPEN = Buffer.from([0, 20, 0, 10]);

describe('a connection to one of several nodes', () => {
  let bench: ConnectionBench;
  let links: BrokerLinks;

  beforeAll(async () => {
    bench = await ConnectionBench.start();
    ({ links } = bench);
  });
  afterEach(() => bench.reset());
  afterAll(() => bench?.stop());

  it('opens another channel at once when a queue has no leader yet, and says so once', async () => {
    const MOST = 8;
    let setups = 0;
    let first = 0;
    await bench.opened({
      setup: async () => {
        first ||= performance.now();
        if (++setups <= MOST) throw new NotYet('no leader yet');
      },
    });
    // Waits that double from 100 ms, and are half as long by chance, would take longer.
    expect(performance.now() - first).toBeLessThan((100 * (2 ** MOST - 1)) / 2);
    expect(bench.lines.filter((line) => line.includes('no leader yet'))).toEqual([expect.stringContaining('"warn"')]);
  });

  it('says once a minute why a channel cannot be set up, however often it tries', async () => {
    let setups = 0;
    await bench.opened({
      setup: async () => {
        if (++setups <= 4) throw new Error(`queue ${setups <= 3 ? 'one' : 'two'} does not exist`);
      },
    });
    expect(bench.lines.filter((line) => line.includes('does not exist'))).toEqual([
      expect.stringMatching(/"error".*queue one .*"attempts":1/),
      expect.stringMatching(/"error".*queue two .*"attempts":1/),
    ]);
  });

  it('spreads processes evenly, and keeps the connections of one at one node', async () => {
    const opened = async (processes: number, preference?: number) => {
      await Promise.all(Array.from({ length: processes }, () => bench.opened({}, undefined, preference)));
      return links.proxies.map(({ openLinks }) => openLinks);
    };
    let spread: number[][] = [];
    // Again when the machine was so slow that a process has gone on to its next node.
    await eventually(async () => {
      await bench.reset();
      const begunAt = performance.now();
      spread = [await opened(9), await opened(3, 0)];
      return performance.now() - begunAt < SHORT_CONNECT_TIMEOUT_MS;
    });
    expect(spread).toEqual([
      [3, 3, 3],
      [6, 3, 3],
    ]);
  });

  it('has a usable channel at another node within 1 s of the end of its node', async () => {
    const tookMs: number[] = [];
    // A busy machine delays some of them.
    await eventually(async () => {
      const { connection, channel, node } = await bench.opened();
      const killedAt = performance.now();
      links.kill(node);
      await eventually(() => channel.check() !== undefined, undefined, 1);
      expect(await channel.whenReady(20_000)).toBe(true);
      tookMs.push(performance.now() - killedAt);
      expect(links.nodeOf(connection)).not.toBe(node);
      expect(bench.lines.at(-1)).toContain(
        `"msg":"connected to the broker","connection":"test","address":"${connection.address}"`,
      );
      links.heal();
      return Math.min(...tookMs) < 1000;
    }, 20_000);
  });

  it('waits 2.5 s, and not 10 s, for a node that accepts and does not answer, while there is another', async () => {
    const { connection, channel, node } = await bench.opened();
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
    const { channel, connection } = await bench.opened();
    for (const proxy of links.proxies) links.kill(proxy);
    await eventually(() => bench.lines.some((line) => line.includes('no connection: ')));
    const line = bench.lines.find((one) => one.includes('no connection: '));
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
    const url = new URL(bench.broker.url);
    const wrong = 'a wrong password';
    url.password = wrong;
    const channel = bench.channelOf(bench.connectionTo(url.href));
    await eventually(() => bench.rounds >= 4);
    expect(channel.check()).toMatch(/^not connected to the broker: .*ACCESS_REFUSED/);
    expect(bench.lines.filter((line) => line.includes('no connection: '))).toEqual([expect.stringContaining('"attempts":1')]);
    expect(`${channel.check()} ${bench.lines.join()}`).not.toContain(wrong);
  });

  it('gives up a node at which no channel opens, and says so meanwhile', async () => {
    const connection = bench.connectionTo(links.url);
    await eventually(() => connection.state === 'up');
    const node = links.nodeOf(connection);
    node.inspector = (bytes, direction) => (direction === 'toServer' && bytes.includes(CHANNEL_OPEN) ? 'hold' : 'pass');
    const channel = bench.channelOf(connection, { name: 'users.calls', timeoutMs: 1500 });
    await eventually(() => channel.check() === `users.calls: opening a channel at ${links.address(node)}`);
    expect(await channel.whenReady(20_000)).toBe(true);
    expect(links.nodeOf(connection)).not.toBe(node);
    expect(bench.lines.join()).toContain(`users.calls: opening a channel at ${links.address(node)} took over 1.5 s`);
  });

  it('keeps a connection whose other channels work while one is not set up in time', async () => {
    const { connection, channel } = await bench.opened();
    const model = connection.current;
    let attempts = 0;
    // As while the node with a queue is away.
    const slow = bench.channelOf(connection, {
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
    const connection = bench.connectionTo(links.url);
    await eventually(() => connection.state === 'up');
    const { address } = connection;
    const channel = bench.channelOf(connection, {
      setupMs: 200,
      setup: () => (connection.address === address ? new Promise<void>(() => undefined) : Promise.resolve()),
    });
    expect(await channel.whenReady(20_000)).toBe(true);
    expect(connection.address).not.toBe(address);
  });

  it('gives up a node from which nothing has arrived for 8 s', async () => {
    let arrivedAt = 0;
    for (const proxy of links.proxies)
      proxy.inspector = (_, direction) => {
        if (direction === 'toClient') arrivedAt = performance.now();
        return 'pass';
      };
    const { connection, channel, node } = await bench.opened();
    node.stall();
    node.inspector = undefined;
    await eventually(() => channel.check() !== undefined, undefined, 1);
    const silentMs = performance.now() - arrivedAt;
    // Timers may be a millisecond early, and a busy machine is late.
    expect(silentMs).toBeGreaterThan(7900);
    expect(silentMs).toBeLessThan(16_000);
    expect(await channel.whenReady(20_000)).toBe(true);
    expect(links.nodeOf(connection)).not.toBe(node);
    expect(bench.lines.join()).toContain('no sign of life for 8 s');
  });
});
