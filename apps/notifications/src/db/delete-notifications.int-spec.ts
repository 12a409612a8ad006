import { planOf, touchedBy } from '@app/testing/database/plan';
import { EVENT_TYPES } from '@app/contracts/event-types';
import { DeleteNotificationsRepository, type Deletion } from './delete-notifications.repository';
import { DELETE_BY_DOCUMENT, DELETE_BY_ID, DELETE_BY_LOCATION, MOST_DELETED, MOST_EVENTS } from './delete-notifications.sql';
import { InsertNotificationsRepository } from './insert-notifications.repository';
import { ReadingsRepository } from './readings.repository';
import { aNotification, testDatabase } from '../../test/notifications';

const database = testDatabase();
let inserts: InsertNotificationsRepository;
let deletes: DeleteNotificationsRepository;
let messages = 0;

beforeAll(() => void (deletes = new DeleteNotificationsRepository(database.dataSources[0])));
beforeEach(async () => {
  await query('TRUNCATE organizations, documents, notifications, recipients, outbox, deletions, readings CASCADE');
  // It remembers no document of the test before.
  inserts = new InsertNotificationsRepository(database.dataSources[0]);
});

const query = <Row>(sql: string, values?: unknown[]) => database.dataSources[0].query<Row[]>(sql, values);

async function store(...batch: Parameters<typeof aNotification>[0][]): Promise<void> {
  await inserts.insert(batch.map(aNotification).sort((a, b) => (a.id < b.id ? -1 : 1)));
}

/** As if all notifications had been stored a minute ago, and their events were published. */
async function publishAll(): Promise<void> {
  await query('DELETE FROM outbox');
  for (const table of ['notifications', 'recipients']) await query(`UPDATE ${table} SET "timestamp" = "timestamp" - 60000`);
}

const run = (differences: Partial<Deletion>) =>
  deletes.delete({ apiKey: 'tenant', organizationId: 'org', messageId: `m${++messages}`, ...differences });

const left = async () => {
  const rows = await query<{ id: string }>(`SELECT id FROM notifications WHERE document_id <> '' ORDER BY id COLLATE "C"`);
  return rows.map(({ id }) => id);
};

it('deletes the oldest of a document with their recipients, and leaves those of other documents and tenants', async () => {
  await store({ id: 'a' }, { id: 'b', to: ['reader', '__proto__', 'a "quoted" one'] }, { id: 'c', documentId: 'other' });
  await store({ id: 'a', apiKey: 'stranger' }, { id: 'a', organizationId: 'other' });
  await publishAll();
  const deleted = await run({ documentId: 'doc' });
  expect(deleted).toMatchObject({
    deleted: ['a', 'b'],
    left: [],
    event: { type: EVENT_TYPES.notificationDeleted, apiKey: 'tenant' },
  });
  expect(deleted?.next).toBeUndefined();
  expect(JSON.parse(deleted?.event?.data ?? '')).toEqual({ organizationId: 'org', notificationIds: ['a', 'b'], version: 1 });
  expect(await left()).toEqual(['a', 'a', 'c']);
  const recipients = await query<{ notification_id: string }>('SELECT notification_id FROM recipients ORDER BY 1');
  expect(recipients.map((row) => row.notification_id)).toEqual(['a', 'a', 'c']);
});

it('deletes what users have read of it, and nothing else', async () => {
  await store({ id: 'a' }, { id: 'b' });
  await query(
    `INSERT INTO readings SELECT n.organization, u, n."timestamp", n.id, true, -1 FROM notifications n, unnest('{u,v}'::text[]) u`,
  );
  await run({ ids: ['a'] });
  const rows = await query<{ notification_id: string }>('SELECT notification_id FROM readings');
  expect(rows.map((row) => row.notification_id)).toEqual(['b', 'b']);
});

it('deletes at a location, and by ids with the other filters as conditions', async () => {
  await store({ id: 'a', locationId: 'l' }, { id: 'b', locationId: 'm' }, { id: 'c', locationId: 'l', documentId: 'other' });
  expect((await run({ documentId: 'doc', locationId: 'l' }))?.deleted).toEqual(['a']);
  expect((await run({ ids: ['b', 'c'], documentId: 'doc', locationId: 'l' }))?.deleted).toEqual([]);
  expect((await run({ ids: ['b', 'b', 'c', 'unknown'] }))?.deleted).toEqual(['b', 'c']);
  expect(await left()).toEqual([]);
});

it('keeps the ids taken: the same notification is not stored again, and deleting again succeeds', async () => {
  const notification = aNotification({ id: 'a' });
  await inserts.insert([notification]);
  await run({ ids: ['a'] });
  expect((await inserts.insert([notification])).size).toBe(0);
  expect(await inserts.findStored([notification])).toEqual([{ fingerprint: notification.fingerprint }]);
  expect(await run({ ids: ['a'], documentId: 'another' })).toMatchObject({ deleted: ['a'], left: [] });
  expect(await left()).toEqual([]);
});

it('goes on page by page, and leaves what was stored after the first call', async () => {
  await store(...Array.from({ length: MOST_DELETED + 1 }, (_, n) => ({ id: `n${n}` })));
  await query(`UPDATE notifications SET "timestamp" = "timestamp" - 1000`);
  const first = await run({ documentId: 'doc' });
  expect(first?.deleted).toHaveLength(MOST_DELETED);
  const [{ now }] = await query<{ now: string }>('SELECT max(moment) AS now FROM deletions');
  expect(first?.next).toBe(Number(now));
  await store({ id: 'later' });
  await query(`UPDATE notifications SET "timestamp" = $1::bigint + 1 WHERE id = 'later'`, [now]);
  const second = await run({ documentId: 'doc', moment: first?.next });
  expect([second?.deleted.length, second?.next]).toEqual([1, undefined]);
  expect(await left()).toEqual(['later']);
});

it('does not delete on redelivery what was stored after the first delivery', async () => {
  await store({ id: 'a' });
  await run({ documentId: 'doc', messageId: 'same' });
  await query(`UPDATE deletions SET moment = moment - 1000 WHERE message_id = 'delete same'`);
  await store({ id: 'b' });
  for (const filter of [{ documentId: 'doc' }, { ids: ['b'] }])
    expect((await run({ ...filter, messageId: 'same' }))?.deleted).toEqual([]);
  expect(await left()).toEqual(['b']);
});

it('keeps the moment of each operation by itself, when a publisher uses a message id for two of them', async () => {
  const readings = new ReadingsRepository(database.dataSources[0]);
  const tenant = { apiKey: 'tenant', organizationId: 'org' };
  const readAll = (messageId: string) =>
    readings.updateUpTo({ ...tenant, userId: 'reader', readUpTo: Date.now() + 60_000, messageId });
  await readAll('read first');
  await run({ ids: [], messageId: 'deleted first' });
  await query('UPDATE deletions SET moment = moment - 60000');
  await store({ id: 'a' });
  const [{ stored }] = await query<{ stored: string }>('SELECT max("timestamp") AS stored FROM notifications');
  expect((await readAll('deleted first'))?.readUpTo).toBeGreaterThanOrEqual(Number(stored));
  expect((await run({ documentId: 'doc', messageId: 'read first' }))?.deleted).toEqual(['a']);
});

it('takes recipients and bytes up to their limits, but at least one notification', async () => {
  const to = Array.from({ length: 1000 }, (_, n) => `u${n}`);
  await store(...Array.from({ length: 12 }, (_, n) => ({ id: `n${10 + n}`, to })));
  await query(`UPDATE notifications SET "timestamp" = right(id, 2)::bigint`);
  expect((await run({ documentId: 'doc' }))?.deleted).toHaveLength(10);
  await query('UPDATE notifications SET size = 5000000');
  const ids = ['n20', 'n21'];
  expect(await run({ ids })).toMatchObject({ deleted: ['n20'], left: ['n21'] });
  expect(await run({ ids })).toMatchObject({ deleted: ['n21', 'n20'], left: [] });
});

it('deletes nothing after the deadline', async () => {
  await store({ id: 'a' });
  expect(await run({ documentId: 'doc', deadline: Date.now() - 3000 })).toBeUndefined();
  expect(await left()).toEqual(['a']);
  expect(await query('SELECT FROM deletions')).toEqual([]);
});

it('leaves its event to the table while an event of the same notification may be on its way', async () => {
  await store({ id: 'young' });
  // Another process has published it, and the one that stored it may still be writing to a link that has stalled.
  await query('DELETE FROM outbox');
  expect((await run({ ids: ['young'] }))?.event).toBeUndefined();
  await store({ id: 'a' }, { id: 'b' });
  await publishAll();
  await query(`INSERT INTO outbox (organization, notification_id) SELECT organization, id FROM notifications WHERE id = 'a'`);
  expect((await run({ ids: ['a'] }))?.event).toBeUndefined();
  expect((await run({ ids: ['b'] }))?.event).toBeDefined();
});

it('leaves its event to the table while many events wait, and looks through few of them', async () => {
  const events = (count: number) =>
    query(`INSERT INTO outbox (organization, notification_id) SELECT 1, 'other' || n FROM generate_series(1, $1::int) n`, [
      count,
    ]);
  await store({ id: 'a' }, { id: 'b' });
  await publishAll();
  await events(MOST_EVENTS - 1);
  expect((await run({ ids: ['a'] }))?.event).toBeDefined();
  await events(MOST_EVENTS);
  const runner = database.dataSources[0].createQueryRunner();
  try {
    await runner.startTransaction();
    await runner.query(`PREPARE deletion AS ${DELETE_BY_ID.text}`);
    const nodes = await planOf(runner, `EXECUTE deletion ('tenant', 'org', 'm', NULL, NULL, 'e', 256, NULL, NULL, '{b}', NULL)`);
    expect(Math.max(...nodes.map(touchedBy))).toBe(MOST_EVENTS);
  } finally {
    await runner.query('DEALLOCATE deletion');
    await runner.rollbackTransaction();
    await runner.release();
  }
  expect((await run({ ids: ['b'] }))?.event).toBeUndefined();
});

it.each([
  [DELETE_BY_DOCUMENT, `'tenant', 'org', 'm', NULL, NULL, 'e', 256, 'd1', NULL`],
  [DELETE_BY_LOCATION, `'tenant', 'org', 'm', NULL, NULL, 'e', 256, 'd1', 'l1', NULL`],
  [DELETE_BY_ID, `'tenant', 'org', 'm', NULL, NULL, 'e', 256, NULL, NULL, '{n1,n2,n3}', NULL`],
])('reads only what it deletes, even with a plan from when the tables were empty: %#', async ({ text }, values) => {
  const runner = database.dataSources[0].createQueryRunner();
  await runner.query('SET statement_timeout = 0');
  await runner.query(`PREPARE deletion AS ${text}`);
  await runner.query(`EXPLAIN EXECUTE deletion (${values})`);
  await runner.query(`INSERT INTO organizations (api_key, organization_id) VALUES ('tenant', 'org')`);
  await runner.query(
    `INSERT INTO notifications (organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content)
     SELECT o.id, 'n' || n, n, 'd' || n % 100, 'l' || n % 100, false, 2, '\\x00', json_build_object('notifyUsers', json_build_array(json_build_object('userId', 'u' || n)))
     FROM organizations o, generate_series(1, 20000) n`,
  );
  await runner.query(
    `INSERT INTO recipients (organization, user_id, "timestamp", notification_id, document_id, location_id)
     SELECT o.id, 'u' || n, n, 'n' || n, 'd' || n % 100, 'l' || n % 100 FROM organizations o, generate_series(1, 20000) n`,
  );
  await runner.query('ANALYZE notifications, recipients');
  try {
    const nodes = await planOf(runner, `EXECUTE deletion (${values})`);
    expect(Math.max(...nodes.map(touchedBy))).toBeLessThanOrEqual(MOST_DELETED + 1);
  } finally {
    await runner.query('DEALLOCATE deletion');
    await runner.query('RESET statement_timeout');
    await runner.release();
  }
});

it('reads the recipients of a notification where they lie side by side, and looks them up when one lies elsewhere', async () => {
  const runner = database.dataSources[0].createQueryRunner();
  const deletionOf = (id: string) =>
    `EXECUTE deletion ('tenant', 'org', 'of ${id}', NULL, NULL, 'e', 256, NULL, NULL, '{${id}}', NULL)`;
  await runner.query(`PREPARE deletion AS ${DELETE_BY_ID.text}`);
  try {
    await runner.query(`EXPLAIN ${deletionOf('a')}`);
    const to = Array.from({ length: 1000 }, (_, n) => `u${n}`);
    await store({ id: 'a', to }, { id: 'b', to }, { id: 'c', to });
    await query(`UPDATE recipients SET location_id = 'moved to the end' WHERE notification_id = 'b' AND user_id = 'u500'`);
    const lookups = [];
    for (const id of ['a', 'b']) {
      const nodes = (await planOf(runner, deletionOf(id))).filter((node) => node['Relation Name'] === 'recipients');
      lookups.push(nodes.filter((node) => node['Index Name']).reduce((sum, node) => sum + node['Actual Loops'], 0));
      expect(Math.max(...nodes.map(touchedBy))).toBeLessThan(2 * to.length);
    }
    expect(lookups).toEqual([2, 2 + to.length]);
    const rows = await query<{ id: string; count: number }>(
      'SELECT notification_id AS id, count(*)::int FROM recipients GROUP BY 1',
    );
    expect(rows).toEqual([{ id: 'c', count: to.length }]);
  } finally {
    await runner.query('DEALLOCATE deletion');
    await runner.release();
  }
});
