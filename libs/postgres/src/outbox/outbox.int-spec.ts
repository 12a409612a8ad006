import { Logger } from '@nestjs/common';
import { register } from 'prom-client';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { numbered, outboxBench } from '../../test/outbox-bench';
import { OutboxFull, OutboxRelay } from './outbox';

describe(OutboxRelay.name, () => {
  const bench = outboxBench();
  const { published, take, toList } = bench;
  const write = (...ids: string[]) => bench.store(ids);

  it('publishes the events in order when it is woken, and empties the table', async () => {
    const relay = bench.relayTo(toList);
    const ids = numbered(1000);
    await write(...ids);
    relay.wake();
    await eventually(() => published.length === 1000);
    await eventually(async () => (await bench.left()).length === 0);
    expect(published).toEqual(ids);
  });

  it('takes its events again when it stood still in between: another process may have published them', async () => {
    await write('a');
    const clock = jest.spyOn(performance, 'now');
    let taken = 0;
    const relay = bench.relayTo(toList, {
      take: async (...asked) => {
        const batch = await take(...asked);
        if (taken++ === 0) clock.mockReturnValueOnce(performance.now() + 6000);
        return batch;
      },
    });
    relay.wake();
    await eventually(() => published.length > 0);
    clock.mockRestore();
    expect({ taken, published }).toEqual({ taken: 2, published: ['a'] });
  });

  it('goes on in another way after a batch in turns that has failed', async () => {
    await write(...numbered(600));
    const relay = bench.relayTo(toList, {
      // As when the statement takes too long: it reads many more rows.
      take: (client, limits, without) =>
        limits.turnsAmong ? Promise.reject(new Error('statement timeout')) : take(client, limits, without),
    });
    relay.wake();
    await eventually(async () => (await bench.left()).length === 0);
  });

  it('begins with events that another process has left', async () => {
    await write('left');
    bench.relayTo(toList).start();
    await eventually(() => published.length === 1);
  });

  it('does not publish uncommitted or rolled-back events', async () => {
    const relay = bench.relayTo(toList);
    await bench.sql.query('BEGIN');
    await write('pending');
    relay.wake();
    await write('rolled back');
    await bench.sql.query('ROLLBACK');
    await write('committed');
    relay.wake();
    await eventually(() => published.length > 0);
    expect(published).toEqual(['committed']);
  });

  it('keeps events that could not be published, says why, and tries again', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    let failuresLeft = 3;
    const relay = bench.relayTo(async (events) => {
      // As for a host with two addresses.
      if (failuresLeft-- > 0) throw Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' });
      await toList(events);
    });
    await write('a', 'b');
    relay.wake();
    await eventually(async () => failuresLeft < 0 && (await bench.left()).length === 0);
    expect(published).toEqual(['a', 'b']);
    expect(warn.mock.calls).toEqual([[{ msg: 'events stay in the outbox for now', reason: 'ECONNREFUSED' }]]);
    warn.mockRestore();
  });

  it('keeps events that must be published again, does not delay the others, and publishes them later', async () => {
    const old = numbered(450);
    const failed = async () => (await register.getSingleMetric('outbox_failures_total')?.get())?.values[0].value ?? 0;
    const failedBefore = await failed();
    let refusing = true;
    let rounds = 0;
    const relay = bench.relayTo(async (events) => {
      if (events[0].id === 'e0') rounds++;
      const again = events.filter(({ id }) => refusing && id.startsWith('e') && id !== 'e7').map(({ id }) => id);
      await toList(events.filter(({ id }) => !again.includes(id)));
      return new Set(again);
    });
    await write(...old);
    relay.wake();
    for (let later = 0; rounds < 4; later++) {
      await write(`later ${later}`);
      relay.wake();
      await eventually(() => published.includes(`later ${later}`));
    }
    expect(published).toContain('e7');
    await eventually(async () => (await bench.left()).every((id) => id.startsWith('e')));
    expect(await bench.left()).toEqual(old.filter((id) => id !== 'e7'));
    expect(await failed()).toBeGreaterThan(failedBefore);
    refusing = false;
    await eventually(async () => (await bench.left()).length === 0);
    expect(published.filter((id) => id.startsWith('e')).toSorted()).toEqual(old.toSorted());
  });

  it('leaves the events of a process whose connection ended to the other processes', async () => {
    const { open: inHand, opened: taken } = gate();
    const dying = bench.relayTo(() => {
      inHand();
      return new Promise(() => undefined);
    });
    await write('a');
    dying.wake();
    await taken;
    bench.relays.length = 0;
    const other = bench.relayTo(toList);
    other.wake();
    await bench.sql.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND state = 'idle in transaction' AND pid <> pg_backend_pid()`,
    );
    await eventually(() => {
      other.wake();
      return published.length === 1;
    });
    // It is published before the deletion is committed.
    await eventually(async () => (await bench.left()).length === 0);
  });

  it('shares the work with others, and nothing is published twice while nothing fails', async () => {
    const several = Array.from({ length: 4 }, () => bench.relayTo(toList));
    const ids = numbered(3000);
    for (let from = 0; from < ids.length; from += 100) {
      await write(...ids.slice(from, from + 100));
      for (const relay of several) relay.wake();
    }
    await eventually(() => published.length >= ids.length);
    await eventually(async () => (await bench.left()).length === 0);
    expect(published.toSorted()).toEqual(ids.toSorted());
  });

  it('refuses more when it is full, and takes them again once the broker has taken some', async () => {
    const { open: brokerIsBack, opened: back } = gate();
    const relay = bench.relayTo((events) => back.then(() => toList(events)), { maxEvents: 10 });
    await write(...numbered(10));
    relay.start();
    await eventually(() => relay.check() !== undefined);
    expect(() => relay.requireRoom()).toThrow(OutboxFull);
    brokerIsBack();
    // Before its next look, 10 s later.
    await eventually(() => relay.check() === undefined, 8000);
    relay.requireRoom();
    expect(published).toHaveLength(10);
  });

  describe('woken by NOTIFY', () => {
    it('publishes at once the events of another process', async () => {
      const relay = bench.relayTo(toList, { wokenBy: 'written_elsewhere' });
      relay.start();
      // It looks at the table itself at its start.
      await (relay as unknown as { sweeping: Promise<void> }).sweeping;
      await bench.sql.query(
        `WITH written AS (INSERT INTO outbox (id) VALUES ('a') RETURNING pg_notify('written_elsewhere', '')) SELECT`,
      );
      // Before its next look, 10 s later.
      await eventually(() => published.length > 0, 9000);
    });

    it('gives its connection back', async () => {
      // More repetitions than the pool has connections.
      for (let time = 0; time < 11; time++) {
        const relay = bench.relayTo(toList, { wokenBy: 'written_elsewhere' });
        relay.start();
        await relay.stop();
      }
      expect(await bench.dataSource.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
    });
  });

  it('publishes the remaining events before it stops', async () => {
    const relay = bench.relayTo(toList);
    await write('last');
    relay.wake();
    await relay.stop();
    expect(published).toEqual(['last']);
  });
});
