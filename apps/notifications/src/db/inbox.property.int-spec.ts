import * as fc from 'fast-check';
import { InboxRepository } from './inbox.repository';
import { BUDGETS, type Budgets, type InboxFilter } from './inbox.sql';
import { InsertNotificationsRepository } from './insert-notifications.repository';
import type { PageWindow } from './pages.repository';
import { ReadingsRepository } from './readings.repository';
import type { Model } from '../../test/inbox-model';
import { FEW, heldDatabase, InboxProgram } from '../../test/inbox-program';
import { step, STEPS, USERS } from '../../test/inbox-steps';
import { aNotification } from '../../test/notifications';

/** A campaign has more: INBOX_RUNS=2000. */
const RUNS = Number(process.env.INBOX_RUNS ?? 100);

const database = heldDatabase();

async function compare(model: Model, filter: Omit<InboxFilter, 'unread'>, budgets: Budgets, size: number): Promise<void> {
  const inbox = new InboxRepository(database.dataSource);
  const right = model.inbox(filter);
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
      const program = new InboxProgram(database, organizationId);
      const { model } = program;
      await program.execute([...first, ...then]);
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
  const { dataSource } = database;
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
