import * as fc from 'fast-check';
import type { PoolClient } from 'pg';
import type { QueryRunner } from 'typeorm';
import { NotificationAdded, NotificationAddedData } from '@app/contracts/events.notifications';
import { validateBody } from '@app/contracts/validate';
import type { OutboxLimits } from '@app/postgres/outbox/outbox-event';
import { InsertNotificationsRepository } from './insert-notifications.repository';
import { takeEvents } from './outbox.repository';
import { aNotification, connectTestDatabase } from '../../test/notifications';

const NO_LIMITS = { events: 100, bytes: 1e6, ageMs: 0 };

let database: Awaited<ReturnType<typeof connectTestDatabase>>;
let runner: QueryRunner;
let client: PoolClient;

beforeEach(async () => {
  database = await connectTestDatabase();
  runner = database.dataSources[0].createQueryRunner();
  client = (await runner.connect()) as PoolClient;
  // Filling the tables may take long on a slow machine.
  await client.query('SET statement_timeout = 0');
});
afterEach(async () => {
  await runner.release();
  await database.close();
});

it('takes the oldest events, up to the given number', async () => {
  await store(5);
  expect(await taken({ ...NO_LIMITS, events: 2 })).toEqual(['n1', 'n2']);
  expect(await taken(NO_LIMITS)).toEqual(['n3', 'n4', 'n5']);
  expect(await taken(NO_LIMITS)).toEqual([]);
});

it('takes at most the given number of bytes, but at least one event', async () => {
  await store(5, 1000);
  expect(await taken({ ...NO_LIMITS, bytes: 1 })).toEqual(['n1']);
  expect(await taken({ ...NO_LIMITS, bytes: 1001 })).toEqual(['n2', 'n3']);
  expect(await taken(NO_LIMITS)).toEqual(['n4', 'n5']);
});

it('skips the given events', async () => {
  await store(5);
  const { rows } = await client.query<{ seq: string }>('SELECT seq FROM outbox ORDER BY seq LIMIT 3');
  const waiting = rows.map(({ seq }) => seq);
  expect(await taken({ ...NO_LIMITS, events: 1 }, client, waiting)).toEqual(['n4']);
  expect(await taken(NO_LIMITS, client, waiting)).toEqual(['n5']);
  expect(await taken(NO_LIMITS)).toEqual(['n1', 'n2', 'n3']);
});

it('skips events that another relay has locked', async () => {
  await store(5);
  const other = database.dataSources[0].createQueryRunner();
  await other.startTransaction();
  expect(await taken({ ...NO_LIMITS, events: 2 }, (await other.connect()) as PoolClient)).toEqual(['n1', 'n2']);
  expect(await taken(NO_LIMITS)).toEqual(['n3', 'n4', 'n5']);
  await other.rollbackTransaction();
  await other.release();
  expect(await taken(NO_LIMITS)).toEqual(['n1', 'n2']);
});

it('lets API keys take turns, whatever their organizations are', async () => {
  await store(5);
  await client.query(`INSERT INTO organizations (api_key, organization_id) VALUES ('tenant', 'another org'), ('late', 'org')`);
  for (const [apiKey, organizationId, id] of [
    ['tenant', 'another org', 'n1'],
    ['late', 'org', 'n2'],
    ['late', 'org', 'n3'],
  ])
    await client.query(
      `INSERT INTO outbox (organization, api_key, type, body)
       SELECT id, NULL, 'inbox.changed.v1', json_build_object('notificationId', $3::text) FROM organizations
       WHERE api_key = $1 AND organization_id = $2`,
      [apiKey, organizationId, `${apiKey} ${id}`],
    );
  await client.query(
    `INSERT INTO outbox (api_key, type, body) VALUES ('one event', 'user.data-deleted.v1', '{"notificationId":"of no organization"}')`,
  );
  const limits = { ...NO_LIMITS, turnsAmong: 100 };
  expect(await taken({ ...limits, events: 3 })).toEqual(['n1', 'late n2', 'of no organization']);
  expect(await taken({ ...limits, events: 3 })).toEqual(['n2', 'n3', 'late n3']);
  expect(await taken({ ...limits, turnsAmong: 2 })).toEqual(['n4', 'n5']);
  expect(await taken(limits)).toEqual(['tenant n1']);
});

it('says whether there may be more', async () => {
  await store(5, 1000);
  const more = async (limits: object) => (await takeEvents(client, { ...NO_LIMITS, ...limits })).more;
  expect(await more({ events: 2 })).toBe(true);
  expect(await more({ bytes: 1 })).toBe(true);
  await client.query('DELETE FROM notifications');
  expect(await more({ events: 1 })).toBe(true);
  expect(await more({})).toBe(false);
  expect(await more({})).toBe(false);
});

it('deletes events whose notification or organization is gone', async () => {
  await store(3);
  await client.query(`DELETE FROM notifications WHERE id <> 'n2'`);
  expect(await taken(NO_LIMITS)).toEqual(['n2']);
  await client.query(`INSERT INTO outbox (organization, notification_id) SELECT organization, id FROM notifications`);
  await client.query('DELETE FROM organizations');
  expect(await taken(NO_LIMITS)).toEqual([]);
  expect((await client.query('SELECT FROM outbox')).rowCount).toBe(0);
});

it('deletes events of notifications that were deleted meanwhile', async () => {
  await store(2);
  await client.query(`UPDATE notifications SET document_id = '' WHERE id = 'n1'`);
  expect(await taken(NO_LIMITS)).toEqual(['n2']);
  expect((await client.query('SELECT FROM outbox')).rowCount).toBe(0);
});

it('takes the event of a deletion 4 s later than others, because an earlier event may be on its way', async () => {
  await store(2);
  await client.query(`UPDATE outbox SET body = '{"notificationId":"own"}', occurred_at = occurred_at - interval '7 s'`);
  await client.query(`UPDATE outbox SET type = 'notification.deleted.v1' WHERE notification_id = 'n1'`);
  expect(await taken({ ...NO_LIMITS, ageMs: 5000 })).toEqual(['own']);
  await client.query(`UPDATE outbox SET occurred_at = occurred_at - interval '2 s'`);
  expect(await taken({ ...NO_LIMITS, ageMs: 5000 })).toEqual(['own']);
});

it('leaves events of a type that it does not know to a process that does', async () => {
  await store(2);
  await client.query(`UPDATE outbox SET type = 'notification.praised.v1' WHERE notification_id = 'n1'`);
  expect(await taken(NO_LIMITS)).toEqual(['n2']);
  const { rows } = await client.query<{ type: string }>('SELECT type FROM outbox');
  expect(rows).toEqual([{ type: 'notification.praised.v1' }]);
});

it('publishes a body of its own as it is, and its bytes count', async () => {
  await store(1);
  const body = JSON.stringify({ notificationId: 'kept', note: 'x'.repeat(1000) });
  await client.query(`INSERT INTO outbox (organization, body) SELECT organization, $1 FROM notifications`, [body]);
  await client.query(`INSERT INTO outbox (organization, notification_id) SELECT organization, id FROM notifications`);
  const { events } = await takeEvents(client, { ...NO_LIMITS, bytes: 1000 });
  expect(events.map(({ data }) => data)).toEqual([expect.stringContaining('"n1"'), body]);
  expect(await taken(NO_LIMITS)).toEqual(['n1']);
});

it('publishes the fields of the contract, and no other key that the content has', async () => {
  await store(1);
  const user = { userId: 'ada', name: 'Ada', email: 'ada@example.com' };
  const content = {
    actionUser: { ...user, secret: 1 },
    displayHeadlineMessageTemplate: 'Hello',
    displayHeadlineMessageTemplateData: { place: 'here' },
    displayBodyMessage: 'Body',
    notificationSourceData: { as: 'sent' },
    notifyUsers: [{ userId: 'grace', secret: 1 }],
    secret: 1,
  };
  await client.query('UPDATE notifications SET content = $1', [content]);
  const {
    events: [event],
  } = await takeEvents(client, NO_LIMITS);
  const data = JSON.parse(event.data) as NotificationAddedData;
  expect(event.type).toBe(NotificationAdded.type);
  expect(data).toEqual({
    notificationId: 'n1',
    organizationId: 'org',
    documentId: 'doc',
    notifyAll: false,
    timestamp: 1,
    version: 1,
    ...content,
    actionUser: user,
    notifyUsers: [{ userId: 'grace' }],
    secret: undefined,
  });
  expect(() => validateBody(NotificationAddedData, data)).not.toThrow();
});

it('makes the same event of a row as its process has made from memory', async () => {
  const text = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('', '\u2028"\\', '\ud800'),
  );
  const user = fc.record({ userId: text, name: text, email: text, other: text }, { requiredKeys: ['userId'] });
  const object = fc.dictionary(fc.oneof(text, fc.constantFrom('2', '10', '1', '__proto__')), fc.jsonValue());
  const content = fc.record(
    {
      actionUser: user,
      displayHeadlineMessageTemplate: text,
      displayHeadlineMessageTemplateData: fc.option(object, { nil: undefined }),
      displayBodyMessage: fc.option(text, { nil: undefined }),
      notificationSourceData: object,
      notifyUsers: fc.uniqueArray(user, { selector: ({ userId }) => userId }),
      other: text,
    },
    { requiredKeys: ['actionUser', 'displayHeadlineMessageTemplate', 'notifyUsers'] },
  );
  const repository = new InsertNotificationsRepository(database.dataSources[0]);
  let number = 0;
  const trace = fc.constantFrom(null, '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 vendor=1');
  const notification = fc.record({ content, locationId: fc.constantFrom(undefined, 'l', ''), notifyAll: fc.boolean(), trace });
  await fc.assert(
    fc.asyncProperty(fc.array(notification, { minLength: 1, maxLength: 5 }), async (notifications) => {
      const batch = notifications.map((one) => aNotification({ id: `n${++number}`, ...one }));
      // A value that PostgreSQL cannot store at all is refused before.
      fc.pre(!batch.some(({ content: { notifyUsers } }) => notifyUsers.some(({ userId }) => !isStorable(userId))));
      const inserted = await repository.insert(batch);
      expect([...inserted.keys()].toSorted()).toEqual(batch.map((_, index) => index));
      expect((await takeEvents(client, NO_LIMITS)).events).toEqual(
        [...inserted.values()].toSorted((a, b) => Number(a.seq) - Number(b.seq)),
      );
    }),
    { numRuns: 200 },
  );
});

it('takes events from the given age on', async () => {
  await store(3);
  await client.query(`UPDATE outbox SET occurred_at = occurred_at - interval '1 min' WHERE notification_id = 'n2'`);
  expect(await taken({ ...NO_LIMITS, ageMs: 50_000 })).toEqual(['n2']);
  expect(await taken({ ...NO_LIMITS, ageMs: 50_000 })).toEqual([]);
  expect(await taken(NO_LIMITS)).toEqual(['n1', 'n3']);
});

async function store(count: number, size = 2): Promise<void> {
  const { rows } = await client.query<{ id: string }>(
    `INSERT INTO organizations (api_key, organization_id) VALUES ('tenant', 'org') RETURNING id`,
  );
  await client.query(
    `WITH outboxed AS (
       INSERT INTO outbox (organization, notification_id) SELECT $1, 'n' || n FROM generate_series(1, $2::int) n
     )
     INSERT INTO notifications (organization, id, "timestamp", document_id, notify_all, size, fingerprint, content)
     SELECT $1, 'n' || n, n, 'doc', false, $3, '\\x00', '{"actionUser":{"userId":"ada"},"notifyUsers":[]}' FROM generate_series(1, $2::int) n`,
    [rows[0]?.id, count, size],
  );
}

async function taken(limits: OutboxLimits, by = client, without: string[] = []): Promise<string[]> {
  const { events } = await takeEvents(by, limits, without);
  return events.map(({ data }) => (JSON.parse(data) as { notificationId: string }).notificationId);
}

const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();
