import type { BrokerLinks } from '@app/testing/broker/broker-links';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { ConnectionBench } from '../../test/connection-bench';
import { isClosed } from './open-connection';

describe('a connection', () => {
  let bench: ConnectionBench;
  let links: BrokerLinks;

  beforeAll(async () => {
    bench = await ConnectionBench.start();
    ({ links } = bench);
  });
  afterEach(() => bench.reset());
  afterAll(() => bench?.stop());

  const drain = async () => undefined;
  const spread = (each: number) => links.proxies.every(({ openLinks }) => openLinks === each);

  it('moves back to a node that has returned, one connection of the process a second', async () => {
    const timers = jest.requireActual<{ setTimeout: (ms: number) => Promise<void> }>('node:timers/promises');
    const waits = jest.spyOn(timers, 'setTimeout');
    const all = await Promise.all(Array.from({ length: 6 }, () => bench.opened({ drain }, 100)));
    await eventually(() => spread(2));
    const [left, ...others] = links.proxies;
    const interrupted = jest.fn();
    const moves: number[] = [];
    // Three waits of 1 s between the first move and the last. Again when a busy machine was late with the first one.
    await eventually(async () => {
      for (const proxy of others) links.kill(proxy);
      await eventually(() => left.openLinks === 6 && all.every(({ channel }) => channel.check() === undefined));
      bench.connectedAt = [];
      for (const { channel } of all) channel.on('lost', interrupted);
      links.heal();
      await eventually(() => spread(2));
      for (const { channel } of all) channel.off('lost', interrupted);
      moves.push(bench.connectedAt.length);
      return bench.connectedAt[3] - bench.connectedAt[0] > 2000;
    }, 30_000);
    expect(interrupted).not.toHaveBeenCalled();
    expect(new Set(moves)).toEqual(new Set([4]));
    // Node 24 writes a warning to stderr for a negative one, where a service writes its log.
    expect(waits.mock.calls.filter(([ms]) => ms < 0)).toEqual([]);
    waits.mockRestore();
  });

  it('keeps the earlier connection for work of one channel, although another has no more to wait for', async () => {
    const { open: letGo, opened: gone } = gate();
    const { connection, channel, node } = await bench.opened({ drain: () => gone }, 100);
    // As after a nack.
    const other = bench.channelOf(connection, { drain: () => Promise.reject(new Error('message nacked')) });
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
    const { connection, channel, node } = await bench.opened({ drain: () => gone }, 100);
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
    const { connection, channel, node } = await bench.opened(
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
    expect(bench.lines.join()).toContain(`not moved to ${links.address(node)}, which is back: its channels could not be set up`);
  });
});
