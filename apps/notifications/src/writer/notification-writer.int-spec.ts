import { createHash } from 'node:crypto';
import type { DataSource, QueryRunner } from 'typeorm';
import { OutboxRelay } from '@app/postgres/outbox/outbox';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import { takeEvents } from '../db/outbox.repository';
import { InsertNotificationsRepository, type NewNotification } from '../db/insert-notifications.repository';
import { eventually } from '@app/testing/eventually';
import { aNotification, connectTestDatabase } from '../../test/notifications';
import { NotificationWriter } from './notification-writer';
import type { Written } from './written';

describe(NotificationWriter.name, () => {
  let database: Awaited<ReturnType<typeof connectTestDatabase>>;
  let dataSource: DataSource;
  let writer: NotificationWriter;
  let otherWriter: NotificationWriter;
  let relays: OutboxRelay[];
  const published: OutboxEvent[] = [];

  beforeAll(async () => {
    database = await connectTestDatabase(2);
    [dataSource] = database.dataSources as [DataSource];
    relays = database.dataSources.map(
      (source) =>
        new OutboxRelay(source, {
          take: takeEvents,
          publish: async (batch) => void published.push(...batch),
          fromMemory: true,
        }),
    );
  });
  // New ones, because they remember documents, and the tables are emptied.
  beforeEach(() => {
    [writer, otherWriter] = database.dataSources.map(
      (source, index) => new NotificationWriter(new InsertNotificationsRepository(source), relays[index]),
    ) as [NotificationWriter, NotificationWriter];
  });
  afterAll(async () => {
    for (const relay of relays) await relay.stop();
    await database.close();
  });
  // DELETE, because a relay may still run: TRUNCATE locks whole tables, and the two could deadlock.
  afterEach(async () => {
    for (const table of ['idempotency_keys', 'recipients', 'notifications', 'documents', 'organizations']) {
      await dataSource.query(`DELETE FROM ${table}`);
    }
  });

  const ids = async (): Promise<string[]> =>
    (await dataSource.query<{ id: string }[]>('SELECT id FROM notifications ORDER BY organization, id')).map(({ id }) => id);
  const count = async (table: string): Promise<number> =>
    Number((await dataSource.query<{ count: string }[]>(`SELECT count(*) FROM ${table}`))[0]?.count);
  const isBlocked = async (): Promise<boolean> =>
    (
      await dataSource.query<unknown[]>(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      )
    ).length > 0;
  const stored = (notificationId: string): Written => ({ outcome: 'stored', notificationId });
  const withKey = (key: string, differences: Partial<NewNotification>, request = 'request'): NewNotification =>
    aNotification({ ...differences, idempotency: { key, fingerprint: createHash('sha256').update(request).digest() } });

  it('stores a notification with its recipients, organization and document', async () => {
    await expect(writer.add(aNotification({ to: ['a', 'b'] }))).resolves.toEqual(stored('n1'));
    expect(await ids()).toEqual(['n1']);
    expect(await count('recipients')).toBe(2);
    expect(await count('organizations')).toBe(1);
    expect(await count('documents')).toBe(1);
  });

  it('publishes one event for each stored notification, and no other', async () => {
    published.length = 0;
    const differences = { documentId: 'd', locationId: 'l', notifyAll: true, to: ['a', 'b'] };
    await Promise.all([writer.add(aNotification(differences)), otherWriter.add(aNotification(differences))]);
    await writer.add(aNotification({ ...differences, to: ['c'] }));
    await writer.add(aNotification({ id: 'late', deadline: Date.now() - 1 }));
    await eventually(() => published.length > 0);
    await eventually(async () => (await count('outbox')) === 0);
    expect(published).toMatchObject([{ type: 'notification.added.v1', apiKey: 'tenant', organizationId: 'org' }]);
    expect(JSON.parse(published[0].data)).toEqual({
      notificationId: 'n1',
      organizationId: 'org',
      documentId: 'd',
      locationId: 'l',
      notifyAll: true,
      timestamp: expect.any(Number),
      version: 1,
      actionUser: { userId: 'actor' },
      displayHeadlineMessageTemplate: 'Hello',
      notifyUsers: [{ userId: 'a' }, { userId: 'b' }],
    });
  });

  it('publishes each of 500 notifications once, while both writers also look at the table', async () => {
    published.length = 0;
    for (const relay of relays) relay.start();
    for (let round = 0; round < 50; round++) {
      await Promise.all(
        Array.from({ length: 10 }, (_, index) => {
          const notification = aNotification({ id: `n${round}-${index}`, documentId: `d${index % 3}` });
          return Promise.all((index % 2 ? [writer, otherWriter] : [otherWriter, writer]).map((each) => each.add(notification)));
        }),
      );
      relays[round % 2].wake();
    }
    await eventually(async () => (await count('outbox')) === 0);
    expect(published).toHaveLength(500);
    expect(new Set(published.map(({ data }) => (JSON.parse(data) as { notificationId: string }).notificationId)).size).toBe(500);
    expect(new Set(published.map(({ id }) => id)).size).toBe(500);
  });

  it('stores the same notification once when it is added 100 times in parallel by two writers', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, index) => (index % 2 ? writer : otherWriter).add(aNotification())),
    );
    expect(new Set(outcomes.map((outcome) => JSON.stringify(outcome)))).toEqual(new Set([JSON.stringify(stored('n1'))]));
    expect(await ids()).toEqual(['n1']);
    expect(await count('recipients')).toBe(1);
  });

  it('distinguishes a repetition from another notification with the same id, in one batch and across batches', async () => {
    const other = aNotification({ documentId: 'other' });
    const [first, second] = await Promise.all([writer.add(aNotification()), writer.add(other)]);
    expect([first?.outcome, second?.outcome]).toEqual(['stored', 'different']);
    await expect(writer.add(other)).resolves.toEqual({ outcome: 'different' });
    await expect(writer.add(aNotification())).resolves.toEqual(stored('n1'));
    expect(await count('documents')).toBe(1);
  });

  it('keeps equal ids of two tenants and of two organizations apart', async () => {
    await Promise.all([
      writer.add(aNotification()),
      writer.add(aNotification({ apiKey: 'other tenant', documentId: 'x' })),
      writer.add(aNotification({ organizationId: 'other org', documentId: 'y' })),
    ]);
    expect(await ids()).toEqual(['n1', 'n1', 'n1']);
  });

  it.each([
    [31, [31]],
    [100, [50, 50]],
    [300, [128, 128]],
  ])('takes %p waiting notifications into the next commits: %p', async (waiting, sizes) => {
    const insert = jest.spyOn(InsertNotificationsRepository.prototype, 'insert');
    await Promise.all(Array.from({ length: waiting }, (_, index) => writer.add(aNotification({ id: `n${index}` }))));
    expect(insert.mock.calls.slice(0, sizes.length).map(([batch]) => batch.length)).toEqual(sizes);
    insert.mockRestore();
    expect(await count('notifications')).toBe(waiting);
  });

  it('halves the recipients of few notifications between two commits', async () => {
    const insert = jest.spyOn(InsertNotificationsRepository.prototype, 'insert');
    const to = Array.from({ length: 100 }, (_, index) => `u${index}`);
    await Promise.all(Array.from({ length: 8 }, (_, index) => writer.add(aNotification({ id: `n${index}`, to }))));
    expect(insert.mock.calls.slice(0, 2).map(([batch]) => batch.length)).toEqual([4, 4]);
    insert.mockRestore();
    expect(await count('recipients')).toBe(800);
  });

  it('lets no heavy one, and none with a near deadline, share a statement with usual ones', async () => {
    // Without it two statements would create the organization, and one of them would be tried again.
    await writer.add(aNotification());
    const insert = jest.spyOn(InsertNotificationsRepository.prototype, 'insert');
    const to = Array.from({ length: 100 }, (_, index) => `u${index}`);
    const deadline = Date.now() + 1900;
    const kinds = { usual: {}, hurried: { deadline }, heavy: { to }, both: { to, deadline } };
    const all = Object.entries(kinds).flatMap(([name, more]) =>
      [1, 2].map((n) => aNotification({ id: `${name} ${n}`, ...more })),
    );
    await Promise.all(all.map((notification) => writer.add(notification)));
    const batches = insert.mock.calls.map(([batch]) => batch.map(({ id }) => id));
    insert.mockRestore();
    expect(batches.sort()).toEqual([
      ['both 1', 'both 2'],
      ['heavy 1', 'heavy 2'],
      ['hurried 1', 'hurried 2'],
      ['usual 1', 'usual 2'],
    ]);
  });

  it('stores a notification anew whose organization is deleted while it is written', async () => {
    await writer.add(aNotification());
    const deleting = database.dataSources[1].createQueryRunner();
    try {
      await deleting.startTransaction();
      for (const table of ['recipients', 'notifications', 'documents', 'organizations'])
        await deleting.query(`DELETE FROM ${table}`);
      // The organization of a new document is looked up before its row is stored.
      const written = writer.add(aNotification({ id: 'n2', documentId: 'other' }));
      await eventually(isBlocked);
      await deleting.commitTransaction();
      await expect(written).resolves.toEqual(stored('n2'));
    } finally {
      await deleting.release();
    }
    expect(await ids()).toEqual(['n2']);
    expect([await count('organizations'), await count('documents')]).toEqual([1, 1]);
  });

  describe('while the database is slow with one batch', () => {
    let blocking: QueryRunner;

    beforeEach(async () => {
      blocking = database.dataSources[1].createQueryRunner();
      await blocking.startTransaction();
      await blocking.query(`INSERT INTO organizations (api_key, organization_id) VALUES ('tenant', 'blocked')`);
    });
    afterEach(() => blocking.release());

    const neighbours = (): NewNotification[] => Array.from({ length: 64 }, (_, index) => aNotification({ id: `n${index}` }));

    it('writes a second one', async () => {
      const blocked = writer.add(aNotification({ id: 'blocked', organizationId: 'blocked' }));
      await eventually(isBlocked);
      await Promise.all(neighbours().map((notification) => writer.add(notification)));
      expect(await count('notifications')).toBe(64);
      await blocking.rollbackTransaction();
      await expect(blocked).resolves.toEqual(stored('blocked'));
    });

    it('writes a single usual one beside heavy ones, and beside one with a near deadline', async () => {
      const to = Array.from({ length: 100 }, (_, index) => `u${index}`);
      const heavy = writer.add(aNotification({ id: 'heavy', organizationId: 'blocked', to }));
      await eventually(isBlocked);
      const hurried = writer.add(aNotification({ id: 'hurried', organizationId: 'blocked', deadline: Date.now() + 1500 }));
      await expect(writer.add(aNotification({ id: 'usual' }))).resolves.toEqual(stored('usual'));
      await blocking.rollbackTransaction();
      await expect(heavy).resolves.toEqual(stored('heavy'));
      await hurried;
    });

    it('gives the outbox the time before the statement, from which the age of its events counts', async () => {
      const add = jest.spyOn(relays[0], 'add');
      const blocked = writer.add(aNotification({ id: 'blocked', organizationId: 'blocked' }));
      await eventually(isBlocked);
      const waiting = performance.now();
      await blocking.rollbackTransaction();
      await blocked;
      const [[events, since]] = add.mock.calls;
      add.mockRestore();
      expect(events).toHaveLength(1);
      expect(since).toBeLessThan(waiting);
    });

    it('delays only notifications with the same Idempotency-Key', async () => {
      const blocked = writer.add(withKey('k', { id: 'blocked', organizationId: 'blocked' }));
      await eventually(isBlocked);
      const repeated = writer.add(withKey('k', { id: 'repeated' }));
      await Promise.all(neighbours().map((notification) => writer.add(notification)));
      await blocking.rollbackTransaction();
      await expect(Promise.all([blocked, repeated])).resolves.toEqual([stored('blocked'), stored('blocked')]);
      expect(await count('notifications')).toBe(65);
    });
  });

  it('stores the other notifications of a batch when the database rejects one', async () => {
    // PostgreSQL cannot store NUL. Validation rejects it; this test bypasses validation.
    const batch = [1, 2, 3, 4, 5].map((number) =>
      aNotification({ id: `n${number}`, documentId: number === 3 ? 'bad\0' : 'doc' }),
    );
    const outcomes = await Promise.allSettled(batch.map((notification) => writer.add(notification)));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
    expect(await ids()).toEqual(['n1', 'n2', 'n4', 'n5']);
  });

  it('skips a notification after its deadline, and stores the others of the batch', async () => {
    const [late, timely] = await Promise.all([
      writer.add(aNotification({ id: 'late', deadline: Date.now() - 1000 })),
      writer.add(aNotification({ id: 'timely', deadline: Date.now() + 60_000 })),
    ]);
    expect(late).toEqual({ outcome: 'expired' });
    expect(timely).toEqual(stored('timely'));
    expect(await ids()).toEqual(['timely']);
  });

  it('survives two writers that create the same organizations and rows in opposite orders', async () => {
    const batch = Array.from({ length: 200 }, (_, index) =>
      aNotification({ id: `n${index}`, organizationId: `org${index % 20}` }),
    );
    const outcomes = await Promise.all([
      ...batch.map((notification) => writer.add(notification)),
      ...[...batch].reverse().map((notification) => otherWriter.add(notification)),
    ]);
    expect(outcomes.filter(({ outcome }) => outcome === 'stored')).toHaveLength(400);
    expect(await count('notifications')).toBe(200);
    expect(await count('recipients')).toBe(200);
    expect(await count('organizations')).toBe(20);
  });

  describe('with an Idempotency-Key', () => {
    it('returns the first answer again, also for a repetition with another id', async () => {
      await expect(writer.add(withKey('k', { id: 'made-1' }))).resolves.toEqual(stored('made-1'));
      await expect(writer.add(withKey('k', { id: 'made-2' }))).resolves.toEqual(stored('made-1'));
      expect(await ids()).toEqual(['made-1']);
    });

    it('refuses another request under the same key', async () => {
      await writer.add(withKey('k', { id: 'n1' }));
      await expect(writer.add(withKey('k', { id: 'n2' }, 'another'))).resolves.toEqual({ outcome: 'keyReused' });
      expect(await ids()).toEqual(['n1']);
    });

    it('has one effect for 50 parallel requests over two writers', async () => {
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, (_, index) => (index % 2 ? writer : otherWriter).add(withKey('k', { id: `made-${index}` }))),
      );
      expect(await count('notifications')).toBe(1);
      const [only] = await ids();
      expect(new Set(outcomes.map((outcome) => JSON.stringify(outcome)))).toEqual(new Set([JSON.stringify(stored(only ?? ''))]));
    });

    it('does not delay other notifications, even with many repetitions', async () => {
      const insert = jest.spyOn(InsertNotificationsRepository.prototype, 'insert');
      const repeated = Array.from({ length: 150 }, (_, index) => writer.add(withKey('k', { id: `made-${index}` })));
      await writer.add(aNotification({ id: 'other' }));
      expect(insert.mock.calls[0]?.[0].map(({ id }) => id)).toEqual(['made-0', 'other']);
      insert.mockRestore();
      expect(new Set((await Promise.all(repeated)).map(({ outcome }) => outcome))).toEqual(new Set(['stored']));
      expect(await ids()).toEqual(['made-0', 'other']);
    });

    it('does not keep a key whose request was refused', async () => {
      await writer.add(aNotification());
      await expect(writer.add(withKey('k', { documentId: 'other' }))).resolves.toEqual({ outcome: 'different' });
      expect(await count('idempotency_keys')).toBe(0);
    });

    it('keeps the key of a repetition with a known id', async () => {
      await writer.add(aNotification());
      await expect(writer.add(withKey('k', {}))).resolves.toEqual(stored('n1'));
      await expect(writer.add(withKey('k', {}, 'another'))).resolves.toEqual({ outcome: 'keyReused' });
    });

    it('belongs to one of two repetitions of different notifications, in one writer and in two', async () => {
      await Promise.all([writer.add(aNotification({ id: 'a' })), writer.add(aNotification({ id: 'b' }))]);
      for (const rival of [writer, otherWriter]) {
        const key = rival === writer ? 'one' : 'two';
        const outcomes = await Promise.all([
          writer.add(withKey(key, { id: 'a' }, 'request a')),
          rival.add(withKey(key, { id: 'b' }, 'request b')),
        ]);
        expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['keyReused', 'stored']);
      }
    });

    it('deletes keys older than a day when new ones are stored', async () => {
      for (const key of ['old', 'recent']) await writer.add(withKey(key, { id: key }));
      await dataSource.query(`UPDATE idempotency_keys SET created_at = now() - interval '26 hours' WHERE key = 'old'`);
      await dataSource.query(`UPDATE idempotency_keys SET created_at = now() - interval '24 hours' WHERE key = 'recent'`);
      await writer.add(withKey('new', { id: 'new' }));
      const keys = await dataSource.query<{ key: string }[]>('SELECT key FROM idempotency_keys ORDER BY key');
      expect(keys.map(({ key }) => key)).toEqual(['new', 'recent']);
    });

    it('is separate for each tenant', async () => {
      await writer.add(withKey('k', {}));
      await expect(writer.add(withKey('k', { apiKey: 'other tenant' }, 'another'))).resolves.toEqual(stored('n1'));
    });
  });
});
