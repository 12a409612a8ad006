import type { QueryRunner } from 'typeorm';
import { planOf, touchedBy } from '@app/testing/database/plan';
import { DELETE_BY_DOCUMENT, DELETE_BY_ID, DELETE_BY_LOCATION, MOST_DELETED, MOST_READINGS } from './delete-notifications.sql';
import { BUDGETS, inboxQuery, type InboxFilter } from './inbox.sql';
import { MOST_YOUNG, UPDATE_EACH, updateUpTo } from './readings.sql';
import { DISTRIBUTIONS, MANY, store } from '../../test/distributions';
import { connectForPlans } from '../../test/notifications';

const BIG = ['notifications', 'recipients', 'readings', 'members'];
/** Rows of a page of 50, or of a count that ends at 100, and one more. */
const PAGE = 51;
const COUNT = 101;
/** Notifications that are younger than the mark of a call. */
const YOUNG = 40;
/** Of a notification, and of the readings of another one that was stored with it. */
const BUSY_TIME = MANY / 2;

/** Name, text, values, and the most rows that one of its scans may touch. */
type Statement = readonly [name: string, text: string, values: (string | number | boolean | null)[], most: number];

const MIDDLE = { timestamp: MANY / 2, notificationId: `m${MANY / 2}` };
/** A count is the same for every page. */
const WINDOWS = [
  { size: 0 },
  ...[false, true].flatMap((unread) => [undefined, MIDDLE].map((after) => ({ size: 50, unread, after }))),
];
const INBOXES = [{}, { documentId: 'busy' }, { locationId: 'busy' }, { documentId: 'busy', locationId: 'busy' }].flatMap(
  (filters) =>
    WINDOWS.map(({ unread, ...window }: { size: number; unread?: boolean; after?: typeof MIDDLE }): Statement => {
      const filter: InboxFilter = { apiKey: 'tenant', organizationId: 'org', userId: 'busy', ...filters, unread };
      const { text, values } = inboxQuery(filter, window);
      const name = JSON.stringify({ ...filters, unread, ...window }).replaceAll('"', '');
      return [name, text, values as (string | number)[], unread ? BUDGETS.page + 1 : PAGE + COUNT];
    }),
);
const TENANT = ['tenant', 'org'];
const IDS = '{m5,m10,m20}';
const DELETION = [...TENANT, 'message', null, null, 'event', MOST_DELETED];
/** One in five is of the document, at least: a plan may also read them by their age. */
const MOST_CANDIDATES = 6 * MOST_DELETED;
const CHANGES: Statement[] = [
  ['readUpTo', updateUpTo(MOST_YOUNG).text, [...TENANT, 'busy', null, 'event', MANY, MANY - YOUNG, null, MANY, null], 2 * YOUNG],
  [
    'read each',
    UPDATE_EACH.text,
    [...TENANT, IDS, null, 'event', null, null, IDS, '{busy,busy,busy}', '{true,false,true}', null],
    3,
  ],
  ['delete by document', DELETE_BY_DOCUMENT.text, [...DELETION, 'busy', null], MOST_CANDIDATES],
  ['delete by location', DELETE_BY_LOCATION.text, [...DELETION, 'busy', 'busy', null], MOST_CANDIDATES],
  ['delete by id', DELETE_BY_ID.text, [...DELETION, null, null, IDS, null], 6],
  ['delete one of a busy time', DELETE_BY_ID.text, [...DELETION, null, null, `{m${BUSY_TIME}}`, null], MOST_READINGS],
];

let runner: QueryRunner;
connectForPlans((one) => (runner = one));

it.each(DISTRIBUTIONS.map((given) => [given[0], given] as const))('reads little with %s', async (_, given) => {
  const statements = await prepared();
  for (const { execute } of statements) await runner.query(`EXPLAIN ${execute}`);
  await fill(given);
  expect((await problemsOf(statements)).map((problem) => `with plans for empty tables: ${problem}`)).toEqual([]);
  for (const fresh of ['ANALYZE', 'VACUUM (ANALYZE)']) {
    await runner.query(fresh);
    // A driver's prepared statement is planned for its values five times, then perhaps for all values.
    for (const kind of ['custom', 'generic']) {
      await runner.query(`SET plan_cache_mode = force_${kind}_plan`);
      expect((await problemsOf(statements)).map((problem) => `${fresh}, ${kind}: ${problem}`)).toEqual([]);
    }
  }
});

/** Two notifications to all have been read by many, singly. */
async function fill(given: (typeof DISTRIBUTIONS)[number]): Promise<void> {
  const id = await store(runner, given);
  await runner.query(
    `INSERT INTO readings SELECT $1, 'u' || n, t, i, true, -1 FROM generate_series(1, ${MANY}) n,
       (VALUES (${MANY}, 'm${MANY}'), (${BUSY_TIME}, 'another')) AS read(t, i)`,
    [id],
  );
}

async function prepared(): Promise<{ name: string; execute: string; most: number }[]> {
  const statements = [];
  for (const [name, text, values, most] of [...INBOXES, ...CHANGES]) {
    const key: string = `s${statements.length}`;
    await runner.query(`PREPARE ${key} AS ${text}`);
    const literals = values.map((value) => (value === null ? 'NULL' : `'${value}'`));
    statements.push({ name, execute: `EXECUTE ${key} (${literals.join()})`, most });
  }
  return statements;
}

/** Without a mark, and with a young one. */
async function problemsOf(statements: { name: string; execute: string; most: number }[]): Promise<string[]> {
  const problems: string[] = [];
  for (const mark of [-1, MANY - YOUNG]) {
    await runner.query(`DELETE FROM read_marks`);
    await runner.query(
      `INSERT INTO read_marks SELECT id, 'busy', $1::bigint, $1::bigint FROM organizations WHERE organization_id = 'org' AND $1 >= 0`,
      [mark],
    );
    for (const [at, { name, execute, most }] of statements.entries()) {
      const isChange = at >= INBOXES.length;
      if (isChange) await runner.query('BEGIN');
      for (const node of await planOf(runner, execute)) {
        const rows = touchedBy(node);
        if (BIG.includes(node['Relation Name'] ?? '') && rows > most)
          problems.push(
            `${mark} ${name}: ${rows} rows of ${node['Relation Name']} by ${node['Index Name'] ?? node['Node Type']}`,
          );
      }
      if (isChange) await runner.query('ROLLBACK');
    }
  }
  return problems;
}
