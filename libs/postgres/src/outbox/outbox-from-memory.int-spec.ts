import { Logger } from '@nestjs/common';
import { register } from 'prom-client';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { metricValue } from '@app/testing/metric-value';
import { numbered, outboxBench } from '../../test/outbox-bench';
import { EVENT_MEMORY_BYTES, EVENT_MEMORY_MS } from './event-memory';
import { outboxOldestSeconds } from '../metrics';
import type { OutboxRelay } from './outbox';
import type { OutboxOptions } from './outbox-event';

/** Events that their process passes to the relay. */
describe('an outbox that publishes from memory', () => {
  const bench = outboxBench();
  const { published, read, toList } = bench;
  const relayTo = (publish: OutboxOptions['publish']) => bench.relayTo(publish, { fromMemory: true });
  const write = async (relay: OutboxRelay, ids: readonly string[], data?: string): Promise<void> => {
    const since = performance.now();
    relay.add(await bench.store(ids, data), since);
  };
  const valueOf = (metric: string) => metricValue(register, metric);
  const grownOld = () => bench.sql.query(`UPDATE outbox SET occurred_at = occurred_at - interval '1 min'`);

  it('publishes and deletes what it gets, and reads nothing back', async () => {
    const relay = relayTo(toList);
    const ids = numbered(1000);
    for (let from = 0; from < ids.length; from += 100) await write(relay, ids.slice(from, from + 100));
    await eventually(async () => (await bench.left()).length === 0);
    expect(published).toEqual(ids);
    expect(read).toEqual([]);
  });

  it('leaves the rows of a living process to it, also when it looks at the table', async () => {
    const relay = relayTo(toList);
    const other = relayTo(toList);
    const events = await bench.store(['a', 'b']);
    other.start();
    other.wake();
    await other.stop();
    expect(published).toEqual([]);
    relay.add(events, performance.now());
    await eventually(async () => (await bench.left()).length === 0);
    expect(published).toEqual(['a', 'b']);
  });

  it('publishes what a process has left: old rows at once, young ones as soon as they are old enough', async () => {
    await bench.store(['old']);
    await grownOld();
    const stored = performance.now();
    await bench.store(['young']);
    relayTo(toList).start();
    await eventually(() => published.length > 0);
    expect(published).toEqual(['old']);
    await eventually(async () => (await bench.left()).length === 0);
    expect(published).toEqual(['old', 'young']);
    // Before the next sweep, 10 s after the first one.
    expect(performance.now() - stored).toBeLessThan(2 * EVENT_MEMORY_MS);
  });

  it('lets no event wait for an older one of the future, after the clock of the database has gone back', async () => {
    await bench.sql.query(`INSERT INTO outbox (id, data, occurred_at) VALUES
      ('ahead', '{}', clock_timestamp() + interval '10 minutes'), ('left', '{}', clock_timestamp() - interval '10 seconds')`);
    relayTo(toList).start();
    await eventually(() => published.includes('left'), EVENT_MEMORY_MS + 5000);
    // It has waited for at least as long as the relay has seen it.
    await eventually(async () => (await valueOf('outbox_oldest_seconds')) > 5, 15_000, 100);
  });

  it('says how long it could not look at the table, and once why', async () => {
    outboxOldestSeconds.set(0);
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    await bench.sql.query('BEGIN; LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE');
    try {
      relayTo(toList).start();
      // Two looks.
      await eventually(async () => (await valueOf('outbox_oldest_seconds')) > 10, 20_000, 100);
    } finally {
      await bench.sql.query('ROLLBACK');
    }
    const reason = 'canceling statement due to statement timeout';
    expect(warn.mock.calls).toEqual([[{ msg: 'the outbox could not be looked at', reason }]]);
    warn.mockRestore();
    await eventually(async () => (await valueOf('outbox_oldest_seconds')) === 0, 15_000, 100);
  });

  it('publishes again, with the same id, what could not be deleted', async () => {
    const relay = relayTo(toList);
    await bench.sql.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no deletion'; END $$`);
    await bench.sql.query('CREATE TRIGGER no_deletion BEFORE DELETE ON outbox FOR EACH ROW EXECUTE FUNCTION refuse()');
    await write(relay, ['a']);
    await eventually(() => published.length === 1);
    await relay.stop();
    expect(await bench.left()).toEqual(['a']);
    await bench.sql.query('DROP FUNCTION refuse CASCADE');
    await grownOld();
    relayTo(toList).start();
    await eventually(async () => (await bench.left()).length === 0);
    expect(published).toEqual(['a', 'a']);
  });

  it('leaves to the table what the broker did not take, and what a listener refuses', async () => {
    let broker = 'is away';
    let attempts = 0;
    const relay = relayTo(async (events) => {
      attempts++;
      if (broker === 'is away') throw new Error('nacked');
      if (broker === 'refuses') return new Set(events.flatMap(({ id }) => (id === 'refused' ? [id] : [])));
      await toList(events);
    });
    await write(relay, ['nacked']);
    await eventually(() => attempts > 0);
    broker = 'refuses';
    await write(relay, ['refused', 'taken']);
    await eventually(async () => (await bench.left()).length === 2);
    expect(await bench.left()).toEqual(['nacked', 'refused']);
    expect(read).toEqual([]);
    broker = 'is back';
    await grownOld();
    relay.wake();
    await eventually(async () => (await bench.left()).length === 0);
    expect(published.toSorted()).toEqual(['nacked', 'refused']);
    expect(read.toSorted()).toEqual(['nacked', 'refused']);
  });

  it('reads by itself what the broker did not take, as soon as that is old enough', async () => {
    let isAway = true;
    const relay = relayTo(async (events) => {
      if (isAway) {
        isAway = false;
        throw new Error('nacked');
      }
      await toList(events);
    });
    await write(relay, ['nacked']);
    await eventually(() => published.length > 0);
    expect([published, read]).toEqual([['nacked'], ['nacked']]);
  });

  it('remembers no more than its bound while the broker is away, and reads the rest from the table later', async () => {
    const { open: brokerIsBack, opened: back } = gate();
    const relay = relayTo((events) => back.then(() => toList(events)));
    const ids = numbered(60);
    // A character of two bytes in UTF-8.
    const data = JSON.stringify('é'.repeat(64 * 1024));
    for (const id of ids) await write(relay, [id], data);
    expect(await bench.left()).toHaveLength(ids.length);
    const fitting = Math.floor(EVENT_MEMORY_BYTES / Buffer.byteLength(data));
    expect(await valueOf('outbox_memory_limit_bytes')).toBe(EVENT_MEMORY_BYTES);
    expect(await valueOf('outbox_memory_bytes')).toBe(fitting * Buffer.byteLength(data));
    brokerIsBack();
    await eventually(async () => (await bench.left()).length === ids.length - fitting);
    expect(published).toEqual(ids.slice(0, fitting));
    await eventually(async () => (await valueOf('outbox_memory_bytes')) === 0);
    // There is room again.
    await write(relay, ['next']);
    await eventually(() => published.includes('next'));
    expect(read).toEqual([]);
    await grownOld();
    relay.wake();
    await eventually(async () => (await bench.left()).length === 0);
    expect(published.toSorted()).toEqual([...ids, 'next'].toSorted());
  });

  it('publishes nothing from memory that is too old', async () => {
    const relay = relayTo(toList);
    const [old] = await bench.store(['old']);
    relay.add([old], performance.now() - EVENT_MEMORY_MS);
    await write(relay, ['young']);
    await eventually(() => published.length > 0);
    await relay.stop();
    expect(published).toEqual(['young']);
    expect(await bench.left()).toEqual(['old']);
  });

  it('publishes what it remembers before it stops', async () => {
    const relay = relayTo(toList);
    await write(relay, ['last']);
    await relay.stop();
    expect(published).toEqual(['last']);
    expect(await bench.left()).toEqual([]);
  });
});
