import * as fc from 'fast-check';
import type { DataSource, QueryRunner } from 'typeorm';
import { deleteBy } from '@app/postgres/retention/deletion-loop';
import { eventually } from '@app/testing/eventually';
import { KEEP_DELETED_MS } from './deleted-notification';
import { DeleteNotificationsRepository } from './delete-notifications.repository';
import { InboxRepository } from './inbox.repository';
import { BUDGETS, type Budgets, type InboxFilter } from './inbox.sql';
import { InsertNotificationsRepository } from './insert-notifications.repository';
import { MembersRepository } from './members.repository';
import type { PageWindow } from './pages.repository';
import { ReadingsRepository } from './readings.repository';
import { DAY_MS, DELETE_OLD_READINGS, deleteOlderThan, FREE_IDS } from './retention.repository';
import { LEVELS, Model } from '../../test/inbox-model';
import { AROUND_MS, step, STEPS, USERS, type Step } from '../../test/inbox-steps';
import { aNotification, connectTestDatabase } from '../../test/notifications';

/** A campaign has more: INBOX_RUNS=2000. */
const RUNS = Number(process.env.INBOX_RUNS ?? 100);
const FEW: Budgets = {
  count: 5,
  named: 5,
  toAll: 5,
  inDocument: 4,
  inDocuments: 5,
  marked: 5,
  pageAtFirst: 2,
  page: 5,
  lookAt: 2,
};

let database: Awaited<ReturnType<typeof connectTestDatabase>>;
let dataSource: DataSource;
let open: QueryRunner;
let settled: number;

beforeAll(async () => {
  database = await connectTestDatabase();
  [dataSource] = database.dataSources;
  open = dataSource.createQueryRunner();
  await open.query('SET idle_in_transaction_session_timeout = 0');
  await open.startTransaction();
  const [{ start }] = (await open.query(`SELECT floor(extract(epoch FROM now()) * 1000)::bigint AS start`)) as {
    start: string;
  }[];
  settled = Number(start) - 1;
  await eventually(() => Date.now() > settled + 2 * AROUND_MS);
});
afterAll(async () => {
  await open.rollbackTransaction();
  await open.release();
  await database.close();
});

async function execute(program: readonly Step[], organizationId: string, model: Model): Promise<void> {
  const tenant = { apiKey: 'tenant', organizationId };
  const both = ['tenant', organizationId] as const;
  const inserts = new InsertNotificationsRepository(dataSource);
  const members = new MembersRepository(dataSource);
  const readings = new ReadingsRepository(dataSource);
  let version = 0;
  // Creates the organization: without it there is nobody whose mark is kept.
  await members.add(...both, LEVELS[0], [{ userId: 'somebody', version }]);
  for (const one of program) {
    version++;
    if (one.act === 'add') {
      const { id, document, location, to, notifyAll, at } = one;
      const timestamp = settled + at;
      if (!model.add({ id, timestamp, document, location, to, notifyAll })) continue;
      await inserts.insert([aNotification({ ...tenant, id, documentId: document, locationId: location, to, notifyAll })]);
      for (const [table, column] of [
        ['notifications', 'id'],
        ['recipients', 'notification_id'],
      ])
        await dataSource.query(
          `UPDATE ${table} SET "timestamp" = $1 WHERE ${column} = $2 AND organization = (SELECT id FROM organizations WHERE organization_id = $3)`,
          [timestamp, id, organizationId],
        );
    } else if (one.act === 'delete') {
      await new DeleteNotificationsRepository(dataSource).delete({
        ...tenant,
        messageId: `${organizationId} ${version}`,
        ids: [one.id],
      });
      model.delete(one.id);
    } else if (one.act === 'expire') {
      // A read state is found by the time of its notification.
      await makeOlder(organizationId, 100 * DAY_MS, [
        ['notifications', `id = '${one.id}' AND document_id <> ''`],
        ['recipients', `notification_id = '${one.id}'`],
        ['readings', `notification_id = '${one.id}'`],
      ]);
      await deleteOlderThan(dataSource, 90, 1000);
      await deleteBy(dataSource, DELETE_OLD_READINGS, [1000, 90 * DAY_MS]);
      model.expire(one.id);
    } else if (one.act === 'free') {
      await makeOlder(organizationId, KEEP_DELETED_MS + 1000, [['notifications', `document_id = ''`]]);
      await deleteBy(dataSource, FREE_IDS, [1000]);
      model.free();
    } else if ('level' in one) {
      model[one.act](one.user, one.level);
      const change = one.act === 'join' ? members.add.bind(members) : members.remove.bind(members);
      await change(...both, one.level, [{ userId: one.user, version }]);
    } else if (one.act === 'leave') {
      model.leave(one.user);
      await members.leave(...both, [{ userId: one.user, version }]);
    } else if (one.act === 'document') {
      model.setDocument(one.document, one.access, one.folder);
      await members.setDocument(...both, { documentId: one.document, folderId: one.folder, access: one.access, version });
    } else if (one.act === 'mark') {
      const ids = [...new Set(one.pairs.map(({ id }) => id))];
      const done = await readings.updateEach({ ...tenant, ids, pairs: one.pairs });
      expect(done?.updated.sort()).toEqual(ids.filter((id) => model.stored.has(id)).sort());
      for (const { id, userId, read } of one.pairs) model.mark(userId, id, read);
    } else {
      const readUpTo = settled + one.at;
      model.upTo(one.user, readUpTo);
      for (let done = -1; done < readUpTo;)
        done = (await readings.updateUpTo({ ...tenant, userId: one.user, readUpTo }, 1, 2))?.readUpTo ?? Infinity;
    }
  }
}

async function makeOlder(organizationId: string, ms: number, rows: readonly (readonly [table: string, where: string])[]) {
  for (const [table, where] of rows)
    await dataSource.query(
      `UPDATE ${table} SET "timestamp" = "timestamp" - $1 WHERE ${where}
         AND organization = (SELECT id FROM organizations WHERE organization_id = $2)`,
      [ms, organizationId],
    );
}

async function compare(model: Model, filter: Omit<InboxFilter, 'unread'>, budgets: Budgets, size: number): Promise<void> {
  const inbox = new InboxRepository(dataSource);
  const right = model
    .shown(filter.userId)
    .filter(({ document }) => document === (filter.documentId ?? document))
    .filter(({ location }) => location === (filter.locationId ?? location))
    .sort((a, b) => b.timestamp - a.timestamp || (a.id < b.id ? 1 : -1))
    .map((one) => ({ id: one.id, timestamp: one.timestamp, read: model.isRead(filter.userId, one) }));
  const unread = right.filter(({ read }) => !read);
  for (const onlyUnread of [false, true]) {
    const found: object[] = [];
    let after: PageWindow['after'];
    do {
      const page = await inbox.find({ ...filter, unread: onlyUnread }, { size, after }, budgets);
      expect(page.notifications.length).toBeLessThanOrEqual(size);
      found.push(...page.notifications.map(({ id, timestamp, read }) => ({ id, timestamp, read })));
      expectCount(page.unread, unread.length, model.stored.size, budgets);
      after = page.next;
    } while (after);
    expect(found).toEqual(onlyUnread ? unread : right);
  }
  const alone = await inbox.find(filter, { size: 0 }, budgets);
  expect([alone.notifications, alone.next]).toEqual([[], undefined]);
  expectCount(alone.unread, unread.length, model.stored.size, budgets);
}

/** Without `more` the count is exact. There is a reason for `more`: too many unread ones, or more than one of the ranges may have. */
function expectCount({ count, more }: { count: number; more: boolean }, right: number, stored: number, budgets: Budgets): void {
  if (more) expect(count).toBeLessThanOrEqual(right);
  else expect(count).toBe(right);
  expect(count).toBeLessThanOrEqual(budgets.count);
  if (stored < budgets.inDocument) expect(more).toBe(right > budgets.count);
}

it('is what the operations before it mean, in each page and every count', async () => {
  const programs = fc.record({
    first: fc.array(STEPS.add, { minLength: 6, maxLength: 12 }),
    then: fc.array(step, { minLength: 5, maxLength: 25 }),
    few: fc.boolean(),
    size: fc.integer({ min: 1, max: 7 }),
    documentId: fc.constantFrom(undefined, undefined, 'd1'),
    locationId: fc.constantFrom(undefined, undefined, 'l1'),
  });
  let [run, unread] = [0, 0];
  await fc.assert(
    fc.asyncProperty(programs, async ({ first, then, few, size, documentId, locationId }) => {
      const organizationId = `org ${run++}`;
      const model = new Model(settled);
      await execute([...first, ...then], organizationId, model);
      for (const userId of USERS) {
        const filter = { apiKey: 'tenant', organizationId, userId, documentId, locationId };
        await compare(model, filter, few ? FEW : BUDGETS, size);
        unread += model.shown(userId).filter((one) => !model.isRead(userId, one)).length;
      }
    }),
    { numRuns: RUNS },
  );
  expect(unread).toBeGreaterThan(run);
});

it('looks further for a page of unread ones, when the newest are read', async () => {
  const organizationId = 'newest are read';
  const tenant = { apiKey: 'tenant', organizationId };
  const ids = Array.from({ length: BUDGETS.pageAtFirst + 20 }, (_, n) => `n${1000 + n}`);
  await new InsertNotificationsRepository(dataSource).insert(ids.map((id) => aNotification({ ...tenant, id, to: ['u'] })));
  const pairs = ids.slice(10).map((id) => ({ id, userId: 'u', read: true }));
  await new ReadingsRepository(dataSource).updateEach({ ...tenant, ids, pairs });
  const { notifications, next } = await new InboxRepository(dataSource).find(
    { ...tenant, userId: 'u', unread: true },
    { size: 10 },
  );
  expect(notifications.map(({ id }) => id)).toEqual(ids.slice(0, 10).reverse());
  expect(next).toBeUndefined();
});
