import type { DataSource } from 'typeorm';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import { deleteBy } from '@app/postgres/retention/deletion-loop';
import { NotificationsErasureSteps } from './erasure-steps';
import { ErasuresRepository, type NewErasure } from './erasures.repository';
import { InsertNotificationsRepository, type NewNotification } from './insert-notifications.repository';
import { MembersRepository } from './members.repository';
import { takeEvents } from './outbox.repository';
import { FORGET_ERASURES } from './retention.repository';
import { DAY_MS } from '../../test/days';
import { aNotification, connectTestDatabase } from '../../test/notifications';

const CANARY = 'canary "ada" \\ ü __proto__';
const ADA = { userId: CANARY, name: 'Canary Ada', email: 'canary@example.com' };
const VERSION = 100;
const DOCUMENT = { level: 'document', id: 'doc' } as const;

let database: Awaited<ReturnType<typeof connectTestDatabase>>;
let dataSource: DataSource;
let members: MembersRepository;
let published: OutboxEvent[];

beforeAll(async () => {
  database = await connectTestDatabase(3);
  [dataSource] = database.dataSources as [DataSource];
  members = new MembersRepository(dataSource);
});
beforeEach(async () => {
  published = [];
  const tables = await dataSource.query<{ name: string }[]>(
    `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'notifications'::regnamespace AND relname <> 'migrations'`,
  );
  await dataSource.query(`TRUNCATE ${tables.map(({ name }) => name).join()} CASCADE`);
});
afterAll(() => database?.close());

const naming = (differences: Partial<NewNotification> = {}) =>
  aNotification({
    ...differences,
    content: {
      actionUser: ADA,
      displayHeadlineMessageTemplate: 'Hello',
      displayHeadlineMessageTemplateData: { actionUser: ADA, recipientUser: { userId: 'bob', name: 'Bob' }, place: 'here' },
      notificationSourceData: { n: 1.5, list: [null] },
      notifyUsers: [ADA, { userId: 'bob', name: 'Bob' }],
    },
  });

const store = (...batch: NewNotification[]) => new InsertNotificationsRepository(dataSource).insert(batch);

/** Everything that this service can have of a user in an organization. */
async function storeAll(apiKey: string, organizationId: string): Promise<void> {
  const ids = Array.from({ length: 5 }, (_, n) => `n${n}`);
  for (const id of ids) await store(naming({ apiKey, organizationId, id }));
  const users = [CANARY, 'bob'].map((userId) => ({ userId, version: 7 }));
  await members.add(apiKey, organizationId, DOCUMENT, users);
  await members.remove(apiKey, organizationId, { level: 'folder', id: 'f' }, users);
  await members.leave(apiKey, organizationId, [{ userId: CANARY, version: 5 }]);
  await members.complete(apiKey, organizationId, CANARY, { memberships: [{ ...DOCUMENT, version: 7 }], wrong: [] });
  await dataSource.query(
    `INSERT INTO readings SELECT n.organization, u, n."timestamp", n.id, true, -1
     FROM notifications n JOIN organizations o ON o.id = n.organization, unnest($3::text[]) u WHERE api_key = $1 AND organization_id = $2`,
    [apiKey, organizationId, [CANARY, 'bob']],
  );
  await dataSource.query(
    `INSERT INTO read_marks SELECT id, u, 1, 1 FROM organizations, unnest($3::text[]) u WHERE api_key = $1 AND organization_id = $2`,
    [apiKey, organizationId, [CANARY, 'bob']],
  );
}

/** Each organization with a row about the user, and the table. */
async function traces(text = 'canary'): Promise<string[]> {
  const found: string[] = [];
  for (const table of ['notifications', 'recipients', 'readings', 'read_marks', 'members', 'departures', 'complete_members']) {
    const rows = await dataSource.query<{ name: string }[]>(
      `SELECT DISTINCT api_key || '/' || organization_id || ' ${table}' AS name FROM ${table} t JOIN organizations o ON o.id = t.organization
       WHERE t::text ILIKE $1 ORDER BY 1`,
      [`%${text}%`],
    );
    found.push(...rows.map(({ name }) => name));
  }
  return found;
}

const order = async (differences: Partial<NewErasure> = {}) => {
  const erasure = { id: 'event', apiKey: 'tenant', userIds: [CANARY], version: VERSION, upTo: Date.now(), ...differences };
  // The moment is over, as when the order has been on its way for a while.
  await new ErasuresRepository(dataSource).order({ ...erasure, upTo: erasure.upTo - 500 });
};
const stepsOf = (source = dataSource, settleMs = 0) =>
  new NotificationsErasureSteps(source, (event) => published.push(event), settleMs);

/** Does all steps, and publishes what waits. */
async function erased(steps = stepsOf()): Promise<void> {
  for (let outcome; outcome !== 'idle';) {
    outcome = await steps.step();
    if (outcome === 'waiting') await publishAll();
  }
}
const publishAll = () =>
  dataSource.transaction((manager) =>
    takeEvents((manager.queryRunner as unknown as { databaseConnection: never }).databaseConnection, {
      events: 1000,
      bytes: 1e9,
      ageMs: -10_000,
    }),
  );

it('leaves nothing of a user in any table but a hash, and other tenants, organizations and users as they were', async () => {
  const places = [
    ['tenant', 'a'],
    ['tenant', 'b'],
    ['tenant', 'kept'],
    ['other', 'a'],
  ] as const;
  for (const [tenant, organization] of places) await storeAll(tenant, organization);
  const before = await traces();
  const bob = await traces('bob');
  expect(before).toHaveLength(7 * places.length);
  await order({ organizationIds: ['b', 'a', 'unknown'] });
  await erased();
  expect(await traces()).toEqual(before.filter((trace) => /^(tenant\/kept|other\/a) /.test(trace)));
  expect(await traces('bob')).toEqual(bob);
  expect(await dataSource.query(`SELECT user_ids, organization_ids FROM erasures`)).toEqual([
    { user_ids: null, organization_ids: ['b', 'a', 'unknown'] },
  ]);
  const { type, data, apiKey, organizationId } = published[0];
  expect({ type, data: JSON.parse(data) as object, apiKey, organizationId }).toEqual({
    type: 'user.data-deleted.v1',
    data: { userIds: [CANARY], organizationIds: ['b', 'a', 'unknown'] },
    apiKey: 'tenant',
    organizationId: 'tenant',
  });
  await order({ id: 'everywhere' });
  await erased();
  expect(await traces()).toEqual(before.filter((trace) => trace.startsWith('other/a ')));
});

it('keeps the rest of a notification', async () => {
  await store(naming());
  await order();
  await erased();
  const [{ content, size }] = await dataSource.query<[{ content: object; size: number }]>(
    'SELECT content, size FROM notifications',
  );
  expect(content).toEqual({
    ...naming().content,
    actionUser: { userId: 'erased' },
    displayHeadlineMessageTemplateData: {
      actionUser: { userId: 'erased' },
      recipientUser: { userId: 'bob', name: 'Bob' },
      place: 'here',
    },
    notifyUsers: [{ userId: 'bob', name: 'Bob' }],
  });
  expect(size).toBe(JSON.stringify(content).length);
});

it('rewrites 8 MiB in one step at most, and the notification that exceeds it', async () => {
  const large = naming().content;
  large.displayBodyMessage = 'x'.repeat(1024 * 1024);
  for (let n = 0; n < 12; n++) await store(aNotification({ id: `n${100 + n}`, content: large }));
  await order();
  const steps = stepsOf();
  const rewritten: number[] = [];
  for (let outcome, before = 12; outcome !== 'idle';) {
    outcome = await steps.step();
    if (outcome === 'waiting') await publishAll();
    const named = await dataSource.query<unknown[]>(`SELECT FROM notifications WHERE content::text LIKE '%canary%'`);
    rewritten.push(before - named.length);
    before = named.length;
  }
  expect(Math.max(...rewritten)).toBeLessThanOrEqual(9);
  expect(await traces()).toEqual([]);
});

it('leaves what is stored later', async () => {
  const upTo = Date.now() - 10_000;
  await storeAll('tenant', 'a');
  await order({ upTo, version: 4 });
  await erased();
  expect((await traces()).map((trace) => trace.split(' ')[1])).toEqual([
    'notifications',
    'recipients',
    'readings',
    'members',
    'departures',
  ]);
});

it('refuses older events about the user from the order on, and lets the next read ask', async () => {
  await store(naming({ notifyAll: true }));
  await order();
  await erased();
  const old = [{ userId: CANARY, version: VERSION }];
  await members.add('tenant', 'org', DOCUMENT, [...old, { userId: 'bob', version: VERSION }]);
  await members.add('tenant', 'org', DOCUMENT, [{ userId: CANARY }]);
  await members.remove('tenant', 'org', DOCUMENT, old);
  await members.leave('tenant', 'org', old);
  expect(await traces()).toEqual([]);
  expect(await traces('bob')).toContain('tenant/org members');
  await members.complete('tenant', 'org', CANARY, { memberships: [], wrong: [] });
  await members.add('tenant', 'org', DOCUMENT, old);
  expect(await members.find('tenant', 'org', CANARY)).toMatchObject({ complete: false });
  await members.add('tenant', 'org', DOCUMENT, [{ userId: CANARY, version: VERSION + 1 }]);
  await members.add('other', 'org', DOCUMENT, old);
  expect(await traces()).toEqual(['other/org members', 'tenant/org members']);
});

it('refuses older events also when it is forgotten', async () => {
  await store(naming({ notifyAll: true }));
  await order();
  await erased();
  await dataSource.query(`UPDATE erasures SET received_at = received_at - interval '7 days 1 minute'`);
  await deleteBy(dataSource, FORGET_ERASURES, [10]);
  expect(await dataSource.query('SELECT FROM erased_users')).toEqual([]);
  // She is back, and complete.
  await members.complete('tenant', 'org', CANARY, {
    memberships: [{ level: 'folder', id: 'f', version: VERSION + 1 }],
    wrong: [],
  });
  await members.add('tenant', 'org', DOCUMENT, [{ userId: CANARY, version: VERSION }], Date.now() - 7 * DAY_MS);
  expect((await members.known('tenant', 'org', CANARY, { most: 2 })).map(({ level }) => level)).toEqual(['folder']);
  expect(await members.find('tenant', 'org', CANARY)).toMatchObject({ complete: false });
});

it('does nothing twice for a repeated order', async () => {
  await order();
  await erased();
  await storeAll('tenant', 'a');
  await order();
  expect(await stepsOf().step()).toBe('idle');
  expect(published).toHaveLength(1);
});

it('is complete after any number of ends, by several processes at once', async () => {
  for (const organizationId of ['o1', 'o2', 'o3'])
    await store(...Array.from({ length: 100 }, (_, n) => naming({ id: `n${100 + n}`, organizationId })));
  await order();
  // Each process does a step of its own choice, and one in three steps is rolled back at its end.
  let steps = 0;
  const broken = (source: DataSource) =>
    new Proxy(source, {
      get: (target, name) =>
        name !== 'transaction'
          ? (Reflect.get(target, name) as unknown)
          : (work: (manager: unknown) => Promise<unknown>) =>
              target.transaction(async (manager) => {
                const done = await work(manager);
                if (++steps % 3 === 0) throw new Error('the end of a process');
                return done;
              }),
    });
  const loops = database.dataSources.map(async (source) => {
    const process = stepsOf(broken(source));
    for (let outcome; outcome !== 'idle';) {
      outcome = await process.step().catch(() => 'failed');
      if (outcome === 'waiting') await publishAll();
    }
  });
  await Promise.all(loops);
  expect(await traces()).toEqual([]);
  expect(published).toHaveLength(1);
});

it('lets the erasures of API keys take turns', async () => {
  for (let n = 0; n < 100; n++) await order({ id: `busy ${n}`, apiKey: 'busy' });
  await order({ id: 'other', apiKey: 'other' });
  const steps = stepsOf();
  for (let step = 0; step < 100 && !published.some(({ apiKey }) => apiKey === 'other'); step++) {
    await steps.step();
    await publishAll();
  }
  const keys = published.map(({ apiKey }) => apiKey);
  expect(keys).toContain('other');
  expect(keys.filter((key) => key === 'busy').length).toBeLessThan(3);
});

it('does not let an erasure that waits hold up others, of the same API key or of another', async () => {
  await order({ id: 'not settled', upTo: Date.now() + 60_000 });
  await order({ id: 'same key' });
  await order({ id: 'other key', apiKey: 'other' });
  // The broker takes no events.
  await store(naming());
  const steps = stepsOf();
  for (let step = 0; step < 20; step++) await steps.step();
  const stages = await dataSource.query<{ id: string; stage: string }[]>('SELECT id, stage FROM erasures ORDER BY received_at');
  expect(stages).toEqual([
    { id: 'not settled', stage: 'people' },
    { id: 'same key', stage: 'people again' },
    { id: 'other key', stage: 'people again' },
  ]);
  expect(await steps.step()).toBe('waiting');
  await publishAll();
  for (let step = 0; step < 20; step++) await steps.step();
  expect(published.map(({ apiKey }) => apiKey).toSorted()).toEqual(['other', 'tenant']);
});

it('begins when everything is visible that was stored before, and ends after a wait for what others have in hand', async () => {
  await store(naming());
  const rival = database.dataSources[1].createQueryRunner();
  await rival.startTransaction();
  await rival.query(`
    WITH late AS (INSERT INTO notifications SELECT organization, 'late', "timestamp", document_id, location_id, notify_all, size, fingerprint, content FROM notifications)
    INSERT INTO recipients SELECT organization, user_id, "timestamp", 'late', document_id FROM recipients`);
  await order();
  expect(await stepsOf().step()).toBe('waiting');
  await rival.commitTransaction();
  await rival.release();
  const steps = stepsOf(dataSource, 60_000);
  for (let outcome; outcome !== 'waiting'; outcome = await steps.step());
  expect(published).toEqual([]);
  expect(await traces()).toEqual([]);
  // An answer of the users service that was asked for before.
  await members.complete('tenant', 'org', CANARY, { memberships: [], wrong: [] });
  expect(await steps.step()).toBe('waiting');
  // An event is not published yet.
  expect(await stepsOf().step()).toBe('waiting');
  await erased();
  expect(await traces()).toEqual([]);
  expect(published).toHaveLength(1);
});
