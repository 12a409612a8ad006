import { Client } from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { createDataSource } from '@app/postgres/connections/data-source';
import { eventually } from '@app/testing/eventually';
import { requiredEnv } from '@app/testing/required-env';
import { InboxRepository } from './inbox.repository';
import { BUDGETS, inboxQuery } from './inbox.sql';
import { InsertNotificationsRepository } from './insert-notifications.repository';
import { ReadingsRepository } from './readings.repository';
import { DATABASE } from './schema';
import { aNotification, testDatabase } from '../../test/notifications';

const TENANT = { apiKey: 'tenant', organizationId: 'org' };
const READER = { ...TENANT, userId: 'reader' };

const database = testDatabase();
let dataSource: DataSource;
let readings: ReadingsRepository;

beforeAll(async () => {
  [dataSource] = database.dataSources as [DataSource];
  readings = new ReadingsRepository(dataSource);
});
beforeEach(() =>
  dataSource.query(
    'TRUNCATE organizations, documents, notifications, recipients, outbox, deletions, readings, read_marks CASCADE',
  ),
);

const store = (id: string) => new InsertNotificationsRepository(dataSource).insert([aNotification({ id })]);
const readUpTo = (moment: number) => readings.updateUpTo({ ...READER, readUpTo: moment, messageId: 'message' });
const unread = async () => {
  const { notifications } = await new InboxRepository(dataSource).find({ ...READER, unread: true }, { size: 10 });
  return notifications.map(({ id }) => id);
};

/** Begins to store a notification like the one that is stored. */
async function storeLate(adding: QueryRunner): Promise<void> {
  await adding.startTransaction();
  const [{ now }] = await dataSource.query<[{ now: string }]>(
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now',
  );
  for (const [table, column] of [
    ['notifications', 'id'],
    ['recipients', 'notification_id'],
  ])
    await adding.query(
      `INSERT INTO ${table} SELECT (r).* FROM (
         SELECT jsonb_populate_record(t, jsonb_build_object('${column}', 'late', 'timestamp', $1::bigint)) AS r
         FROM ${table} t) late`,
      [now],
    );
}

it('leaves unread what becomes visible while the moment of the call is kept', async () => {
  await store('seen');
  const [keeping, adding] = [dataSource.createQueryRunner(), dataSource.createQueryRunner()];
  try {
    await storeLate(adding);
    // As a commit that waits for a standby.
    await keeping.startTransaction();
    await keeping.query(`INSERT INTO deletions VALUES ('tenant', 'update message', 0)`);
    const marked = readUpTo(Date.now() + 60_000);
    await eventually(async () => {
      // Of this database: on the same server other tests wait for locks, too.
      const waiting = await dataSource.query<unknown[]>(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return waiting.length > 0;
    });
    await adding.commitTransaction();
    await keeping.rollbackTransaction();
    await marked;
  } finally {
    await Promise.all([keeping.release(), adding.release()]);
  }
  expect(await unread()).toEqual(['late']);
});

it.each(['all', 'earlier'])('marks what is visible, no more, when %s sessions hide their transactions', async (which) => {
  await store('seen');
  await dataSource.query(
    `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET track_activities = off', current_database()); END $$`,
  );
  const hidden = await createDataSource({ name: 'test', url: database.url, ...DATABASE, poolSize: 2 }).initialize();
  const adding = hidden.createQueryRunner();
  try {
    await storeLate(adding);
    const moment = Date.now() + 60_000;
    await new ReadingsRepository(which === 'all' ? hidden : dataSource).updateUpTo({ ...READER, readUpTo: moment });
    expect(await unread()).toEqual([]);
    await adding.commitTransaction();
  } finally {
    await adding.release();
    await hidden.destroy();
    await dataSource.query(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET track_activities', current_database()); END $$`);
  }
  expect(await unread()).toEqual(['late']);
});

it('has no next page when what is left was read, also of the moment itself', async () => {
  const [{ id }] = await dataSource.query<[{ id: string }]>(
    `INSERT INTO organizations (api_key, organization_id) VALUES ('tenant', 'org') RETURNING id`,
  );
  await dataSource.query(
    `INSERT INTO notifications (organization, id, "timestamp", document_id, notify_all, size, fingerprint, content)
     SELECT $1, 'n' || n, greatest(n, 5), 'd1', true, 2, '\\x00', '{}' FROM generate_series(1, 7) n`,
    [id],
  );
  await dataSource.query(`INSERT INTO members SELECT $1, 'reader', 'document', 'd' || n, 2 FROM generate_series(1, 2) n`, [id]);
  await dataSource.query(`INSERT INTO read_marks VALUES ($1, 'reader', 5, 1)`, [id]);
  const page = await new InboxRepository(dataSource).find(
    { ...READER, unread: true },
    { size: 10 },
    { ...BUDGETS, pageAtFirst: 2, page: 2 },
  );
  expect(page.notifications.map((one) => one.id)).toEqual(['n7', 'n6']);
  expect(page.next).toBeUndefined();
});

it.each([0, 10])('says a moment that everything stored after the answer is later than, in a page of %p', async (size) => {
  const { text, values } = inboxQuery(READER, { size });
  const [{ ahead }] = await dataSource.query<[{ ahead: string }]>(
    `SELECT extract(epoch FROM statement_timestamp()) * 1000 - as_of AS ahead FROM (${text}) answer`,
    values,
  );
  // The timestamp of a notification is rounded, down by less than half a millisecond.
  expect(Number(ahead)).toBeGreaterThanOrEqual(0.5);
  expect(Number(ahead)).toBeLessThanOrEqual(1.5);
});

it('does not mark more on redelivery when the moment in the future has passed', async () => {
  await store('seen');
  const soon = Date.now() + 3000;
  const first = await readUpTo(soon);
  expect(first?.readUpTo).toBeLessThan(soon);
  await readings.updateEach({ ...TENANT, ids: ['seen'], pairs: [{ id: 'seen', userId: 'reader', read: false }] });
  await eventually(() => Date.now() > soon + 10);
  expect((await readUpTo(soon))?.readUpTo).toBe(first?.readUpTo);
  expect(await unread()).toEqual(['seen']);
});

it('keeps nothing for a moment that has passed', async () => {
  await store('seen');
  const past = Date.now() - 1000;
  expect((await readUpTo(past))?.readUpTo).toBe(past);
  expect(await dataSource.query('SELECT FROM deletions')).toEqual([]);
});

it('keeps a later "unread" when an earlier moment is repeated, also while what it covers is too young for the mark', async () => {
  const open = dataSource.createQueryRunner();
  try {
    // Nothing that is stored after its begin is settled.
    await open.startTransaction();
    await store('seen');
    const [{ stored, now }] = await dataSource.query<[{ stored: string; now: string }]>(
      'SELECT "timestamp" AS stored, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now FROM notifications',
    );
    await readUpTo(Number(now));
    expect(await unread()).toEqual([]);
    await readings.updateEach({ ...TENANT, ids: ['seen'], pairs: [{ id: 'seen', userId: 'reader', read: false }] });
    for (const moment of [now, stored].map(Number)) {
      const again = await readUpTo(moment);
      expect(await unread()).toEqual(['seen']);
      expect(again).toMatchObject({ readUpTo: moment, event: undefined });
    }
  } finally {
    await open.rollbackTransaction();
    await open.release();
  }
});

it('marks what is settled although a transaction of another database runs', async () => {
  const elsewhere = new Client({ connectionString: requiredEnv('TEST_DATABASE_URL') });
  await elsewhere.connect();
  try {
    await elsewhere.query('BEGIN');
    await store('seen');
    const [{ stored }] = await dataSource.query<[{ stored: string }]>('SELECT "timestamp" AS stored FROM notifications');
    await eventually(() => Date.now() > Number(stored) + 100);
    await readUpTo(Number(stored));
    expect(await dataSource.query('SELECT read_up_to FROM read_marks')).toEqual([{ read_up_to: stored }]);
  } finally {
    await elsewhere.end();
  }
});
