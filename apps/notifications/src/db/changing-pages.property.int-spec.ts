import * as fc from 'fast-check';
import { InboxRepository } from './inbox.repository';
import { BUDGETS } from './inbox.sql';
import { PagesRepository, type PageWindow } from './pages.repository';
import { FEW, heldDatabase, InboxProgram } from '../../test/inbox-program';
import { step, STEPS, USERS } from '../../test/inbox-steps';

/** A campaign has more: PAGES_RUNS=2000. */
const RUNS = Number(process.env.PAGES_RUNS ?? 60);
const READS = ['newest first', 'oldest first', 'inbox', 'unread'] as const;

const database = heldDatabase();

interface Reader {
  reads: (typeof READS)[number];
  size: number;
  few: boolean;
  userId: string;
  documentId?: string;
  locationId?: string;
}
interface Position {
  id: string;
  timestamp: number;
}

const reader: fc.Arbitrary<Reader> = fc.record({
  reads: fc.constantFrom(...READS),
  size: fc.integer({ min: 1, max: 2 }),
  few: fc.boolean(),
  userId: fc.constantFrom(...USERS),
  documentId: fc.constantFrom(undefined, undefined, undefined, 'd1'),
  locationId: fc.constantFrom(undefined, undefined, undefined, 'l1'),
});
const programs = fc.record({
  first: fc.uniqueArray(STEPS.add, { selector: ({ id }) => id, minLength: 9 }),
  then: fc.array(step, { maxLength: 8 }),
  betweenPages: fc.array(fc.array(step, { maxLength: 3 }), { minLength: 2, maxLength: 8 }),
  reader,
});

async function pageOf(organizationId: string, { reads, size, few, ...filter }: Reader, after: PageWindow['after']) {
  const { dataSource } = database;
  const both = { ...filter, apiKey: 'tenant', organizationId };
  const page =
    reads === 'inbox' || reads === 'unread'
      ? await new InboxRepository(dataSource).find({ ...both, unread: reads === 'unread' }, { size, after }, few ? FEW : BUDGETS)
      : await new PagesRepository(dataSource).find(
          both,
          { size, after, newestFirst: reads === 'newest first' },
          few ? FEW.lookAt : undefined,
        );
  return { found: page.notifications.map(({ id, timestamp }) => ({ id, timestamp })), next: page.next };
}

/** What the reader would be shown now without pages, in its order. */
function shownTo({ reads, ...filter }: Reader, { model }: InboxProgram): Position[] {
  const all = model.inbox(filter).filter(({ read }) => reads !== 'unread' || !read);
  const positions = all.map(({ id, timestamp }) => ({ id, timestamp }));
  return reads === 'oldest first' ? positions.reverse() : positions;
}

it('shows what stays once and what has gone never, while rows come, go and change between two pages', async () => {
  let [run, pages] = [0, 0];
  await fc.assert(
    fc.asyncProperty(programs, async ({ first, then, betweenPages, reader: one }) => {
      const organizationId = `org ${run++}`;
      const program = new InboxProgram(database, organizationId);
      await program.execute([...first, ...then]);
      const sign = one.reads === 'oldest first' ? -1 : 1;
      const isBehind = (a: Position, b: Position) =>
        sign * (b.timestamp - a.timestamp || (a.id < b.id ? 1 : -1)) > 0 && (a.id !== b.id || a.timestamp !== b.timestamp);
      const seen: Position[] = [];
      let stays = shownTo(one, program);
      for (let after: PageWindow['after'], turn = 0, more = true; more; turn++) {
        const from = after && { id: after.notificationId, timestamp: after.timestamp };
        const right = shownTo(one, program);
        stays = stays.filter((old) => right.some(({ id, timestamp }) => id === old.id && timestamp === old.timestamp));
        const { found, next } = await pageOf(organizationId, one, after);
        const to = next && { id: next.notificationId, timestamp: next.timestamp };
        expect(found.length).toBeLessThanOrEqual(one.size);
        expect(found).toEqual(right.filter((each) => (!from || isBehind(each, from)) && !(to && isBehind(each, to))));
        if (from && to) expect(isBehind(to, from)).toBe(true);
        seen.push(...found);
        [after, more] = [next, next !== undefined];
        if (more) await program.execute(betweenPages[turn] ?? []);
        pages++;
      }
      const keys = seen.map(({ id, timestamp }) => `${timestamp} ${id}`);
      expect(keys).toHaveLength(new Set(keys).size);
      expect(keys).toEqual(expect.arrayContaining(stays.map(({ id, timestamp }) => `${timestamp} ${id}`)));
    }),
    { numRuns: RUNS },
  );
  expect(pages).toBeGreaterThan(2 * run);
});
