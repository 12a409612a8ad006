import { Logger } from '@nestjs/common';
import { Client } from 'pg';
import type { DataSource } from 'typeorm';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { createDataSource } from '../connections/data-source';
import { OutboxFull, OutboxRelay } from './outbox';
import type { OutboxEvent, OutboxOptions } from './outbox-event';

/** The relay with a minimal table. The tables of the services are tested with their writers. */
describe(OutboxRelay.name, () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let sql: Client;
  let relays: OutboxRelay[];
  let published: string[];

  beforeAll(async () => {
    database = await createEmptyDatabase();
    sql = new Client({ connectionString: database.url });
    await sql.connect();
    await sql.query(`CREATE TABLE outbox (
      seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL, occurred_at timestamptz NOT NULL DEFAULT now())`);
    dataSource = await createDataSource({
      name: 'test',
      url: database.url,
      schema: 'public',
      migrations: [],
      poolSize: 10,
    }).initialize();
  });
  afterAll(async () => {
    await dataSource.destroy();
    await sql.end();
    await database.drop();
  });
  beforeEach(() => {
    relays = [];
    published = [];
  });
  afterEach(async () => {
    for (const relay of relays) await relay.stop();
    await sql.query('TRUNCATE outbox');
  });

  const take: OutboxOptions['take'] = async (client, { events }, without) => {
    const { rows } = await client.query<{ seq: string; id: string }>(
      `WITH taken AS (
         DELETE FROM outbox WHERE seq IN (
           SELECT seq FROM outbox WHERE seq <> ALL ($2::bigint[]) ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED
         ) RETURNING seq, id
       )
       SELECT seq, id FROM taken ORDER BY seq`,
      [events, without],
    );
    const same = { type: 't', apiKey: 'k', organizationId: 'o', occurredAt: new Date(), data: '{}' };
    return { events: rows.map((row) => ({ ...row, ...same })), more: rows.length === events };
  };
  type Options = Pick<OutboxOptions, 'maxEvents' | 'wokenBy'>;
  const relayTo = (publish: OutboxOptions['publish'], options: Options = {}) => {
    const relay = new OutboxRelay(dataSource, { take, publish, ...options });
    relays.push(relay);
    return relay;
  };
  const toList = async (events: readonly OutboxEvent[]) => void published.push(...events.map(({ id }) => id));
  const write = (...ids: string[]) => sql.query('INSERT INTO outbox (id) SELECT unnest($1::text[])', [ids]);
  const left = async () => (await sql.query<{ id: string }>('SELECT id FROM outbox ORDER BY seq')).rows.map(({ id }) => id);
  const numbered = (count: number) => Array.from({ length: count }, (_, index) => `e${index}`);

  it('publishes the events in order when it is woken, and empties the table', async () => {
    const relay = relayTo(toList);
    const ids = numbered(1000);
    await write(...ids);
    relay.wake();
    await eventually(() => published.length === 1000);
    await eventually(async () => (await left()).length === 0);
    expect(published).toEqual(ids);
  });

  it('takes its events again when it stood still in between: another process may have published them', async () => {
    await write('a');
    const clock = jest.spyOn(performance, 'now');
    let taken = 0;
    const relay = new OutboxRelay(dataSource, {
      take: async (...asked) => {
        const batch = await take(...asked);
        if (taken++ === 0) clock.mockReturnValueOnce(performance.now() + 6000);
        return batch;
      },
      publish: toList,
    });
    relays.push(relay);
    relay.wake();
    await eventually(() => published.length > 0);
    clock.mockRestore();
    expect({ taken, published }).toEqual({ taken: 2, published: ['a'] });
  });

  it('goes on in another way after a batch in turns that has failed', async () => {
    await write(...numbered(600));
    const relay = new OutboxRelay(dataSource, {
      // As when the statement takes too long: it reads many more rows.
      take: (client, limits, without) =>
        limits.turnsAmong ? Promise.reject(new Error('statement timeout')) : take(client, limits, without),
      publish: toList,
    });
    relays.push(relay);
    relay.wake();
    await eventually(async () => (await left()).length === 0);
  });

  it('begins with events that another process has left', async () => {
    await write('left');
    relayTo(toList).start();
    await eventually(() => published.length === 1);
  });

  it('does not publish uncommitted or rolled-back events', async () => {
    const relay = relayTo(toList);
    await sql.query('BEGIN');
    await write('pending');
    relay.wake();
    await write('rolled back');
    await sql.query('ROLLBACK');
    await write('committed');
    relay.wake();
    await eventually(() => published.length > 0);
    expect(published).toEqual(['committed']);
  });

  it('keeps events that could not be published, says why, and tries again', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    let failuresLeft = 3;
    const relay = relayTo(async (events) => {
      // As for a host with two addresses.
      if (failuresLeft-- > 0) throw Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' });
      await toList(events);
    });
    await write('a', 'b');
    relay.wake();
    await eventually(async () => failuresLeft < 0 && (await left()).length === 0);
    expect(published).toEqual(['a', 'b']);
    expect(warn.mock.calls).toEqual([[{ msg: 'events stay in the outbox for now', reason: 'ECONNREFUSED' }]]);
    warn.mockRestore();
  });

  it('keeps events that must be published again, does not delay the others, and publishes them later', async () => {
    const old = numbered(450);
    let refusing = true;
    let rounds = 0;
    const relay = relayTo(async (events) => {
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
    await eventually(async () => (await left()).every((id) => id.startsWith('e')));
    expect(await left()).toEqual(old.filter((id) => id !== 'e7'));
    refusing = false;
    await eventually(async () => (await left()).length === 0);
    expect(published.filter((id) => id.startsWith('e')).toSorted()).toEqual(old.toSorted());
  });

  it('leaves the events of a process whose connection ended to the other processes', async () => {
    const { open: inHand, opened: taken } = gate();
    const dying = relayTo(() => {
      inHand();
      return new Promise(() => undefined);
    });
    await write('a');
    dying.wake();
    await taken;
    relays = [];
    const other = relayTo(toList);
    other.wake();
    await sql.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND state = 'idle in transaction' AND pid <> pg_backend_pid()`,
    );
    await eventually(() => {
      other.wake();
      return published.length === 1;
    });
    // It is published before the deletion is committed.
    await eventually(async () => (await left()).length === 0);
  });

  it('shares the work with others, and nothing is published twice while nothing fails', async () => {
    const several = Array.from({ length: 4 }, () => relayTo(toList));
    const ids = numbered(3000);
    for (let from = 0; from < ids.length; from += 100) {
      await write(...ids.slice(from, from + 100));
      for (const relay of several) relay.wake();
    }
    await eventually(() => published.length >= ids.length);
    await eventually(async () => (await left()).length === 0);
    expect(published.toSorted()).toEqual(ids.toSorted());
  });

  it('refuses more when it is full, and takes them again once the broker has taken some', async () => {
    const { open: brokerIsBack, opened: back } = gate();
    const relay = relayTo((events) => back.then(() => toList(events)), { maxEvents: 10 });
    await write(...numbered(10));
    relay.start();
    await eventually(() => relay.check() !== undefined);
    expect(() => relay.requireRoom()).toThrow(OutboxFull);
    brokerIsBack();
    await eventually(() => relay.check() === undefined);
    relay.requireRoom();
    expect(published).toHaveLength(10);
  });

  describe('woken by NOTIFY', () => {
    it('publishes at once the events of another process', async () => {
      relayTo(toList, { wokenBy: 'written_elsewhere' }).start();
      await eventually(
        async () => {
          await sql.query(
            `WITH written AS (INSERT INTO outbox (id) VALUES ('a') RETURNING pg_notify('written_elsewhere', '')) SELECT`,
          );
          return published.length > 0;
        },
        9000,
        100,
      );
    });

    it('gives its connection back', async () => {
      // More repetitions than the pool has connections.
      for (let time = 0; time < 11; time++) {
        const relay = relayTo(toList, { wokenBy: 'written_elsewhere' });
        relay.start();
        await relay.stop();
      }
      expect(await dataSource.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
    });
  });

  it('publishes the remaining events before it stops', async () => {
    const relay = relayTo(toList);
    await write('last');
    relay.wake();
    await relay.stop();
    expect(published).toEqual(['last']);
  });
});
