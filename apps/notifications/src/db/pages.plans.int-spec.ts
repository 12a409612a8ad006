import type { QueryRunner } from 'typeorm';
import { planOf, touchedBy } from '@app/testing/database/plan';
import { pageQuery, type PageFilter } from './pages.repository';
import { DISTRIBUTIONS, MANY, store } from '../../test/distributions';
import { COMBINATIONS, connectForPlans } from '../../test/notifications';

/** Indexes that a page of each combination must read. Afterwards each notification is looked up by its key. */
const INDEXES: Record<string, string[]> = {
  documentId: ['notifications_by_document'],
  'documentId + ids': ['notifications_pkey'],
  'documentId + locationId': ['notifications_by_location'],
  'documentId + locationId + ids': ['notifications_pkey'],
  userId: ['recipients_pkey', 'notifications_to_all', 'notifications_to_all_by_document'],
  'userId + ids': ['notifications_pkey', 'recipients_pkey or recipients_by_document'],
  'documentId + userId': ['recipients_by_document', 'notifications_to_all_by_document', 'notifications_to_all_by_document'],
  'locationId + userId': [
    'recipients_by_location',
    'notifications_to_all_by_location',
    'notifications_to_all_by_document_location',
  ],
  'documentId + locationId + userId': [
    'recipients_by_document_location',
    'notifications_to_all_by_document_location',
    'notifications_to_all_by_document_location',
  ],
};
const PAGES = COMBINATIONS.flatMap((combination) => [
  { title: combination.join(' + '), combination, after: undefined },
  { title: `${combination.join(' + ')}, later`, combination, after: { timestamp: MANY / 2, notificationId: `m${MANY / 2}` } },
]);
type Page = (typeof PAGES)[number];

let runner: QueryRunner;
connectForPlans((one) => (runner = one));

it.each(DISTRIBUTIONS.map((given) => [given[0], given] as const))(
  'pages of a user, a document and a location with %s read an index range and few other rows',
  async (_, given) => {
    await store(runner, given);
    await runner.query('VACUUM (ANALYZE)');
    const problems = [];
    for (const page of PAGES)
      problems.push(...(await problemsOf(page, await prepared(page), INDEXES[page.combination.join(' + ')])));
    expect(problems).toEqual([]);
  },
);

it.each([0, 1])('plans made for nearly empty tables read as little: %d notifications', async (count) => {
  if (count > 0) {
    await runner.query(
      `INSERT INTO notifications (organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content)
       VALUES (0, 'm', 1, 'document', 'location', true, 2, '\\x00', '{}')`,
    );
    await runner.query(`INSERT INTO recipients VALUES (0, 'user', 1, 'm', 'document', 'location')`);
    await runner.query('VACUUM (ANALYZE)');
  }
  const planned: [Page, string][] = [];
  for (const page of PAGES) {
    planned.push([page, await prepared(page)]);
    await runner.query(`EXPLAIN ${planned.at(-1)?.[1]}`);
  }
  await store(runner, DISTRIBUTIONS[1]);
  const problems = [];
  for (const [page, execute] of planned) problems.push(...(await problemsOf(page, execute)));
  expect(problems).toEqual([]);
});

/** Prepares the query of a page. @returns the EXECUTE statement; the query is not planned yet */
async function prepared({ title, combination, after }: Page): Promise<string> {
  const every = { documentId: 'busy', locationId: 'busy', userId: 'busy', ids: ['m5', 'm10', 'm20'] };
  const filter: PageFilter = { apiKey: 'tenant', organizationId: 'org' };
  for (const key of combination) Object.assign(filter, { [key]: every[key as keyof typeof every] });
  const { text, values } = pageQuery(filter, { newestFirst: true, size: 50, after });
  await runner.query(`PREPARE "${title}" AS ${text}`);
  const literals = values.map((value) => (Array.isArray(value) ? `'{${value.join()}}'` : `'${String(value)}'`));
  return `EXECUTE "${title}" (${literals.join()})`;
}

/** @param indexes that must be read; absent: any index */
async function problemsOf({ title }: Page, execute: string, indexes?: string[]): Promise<string[]> {
  const nodes = await planOf(runner, execute);
  const members = nodes.filter(({ 'Relation Name': relation }) => relation === 'members');
  const scans = nodes.filter(({ 'Relation Name': relation }) => relation === 'notifications' || relation === 'recipients');
  // EXPLAIN does not show the index entries that are scanned and rejected, so check for the right index.
  const used = scans.map((node) => node['Index Name'] ?? node['Node Type']);
  const expected = indexes && [...indexes, 'notifications_pkey'].map((names) => names.split(' or '));
  const right = expected
    ? used.length === expected.length && used.every((name, index) => expected[index].includes(name))
    : scans.every((node) => node['Index Name']);
  return [
    ...(right ? [] : [`${title}: ${used.join(', ')}`]),
    ...members
      .filter((node) => touchedBy(node) > 1)
      .map((node) => `${title}: ${touchedBy(node)} memberships by ${node['Index Name']}`),
    ...scans.flatMap((node) => {
      const rows = touchedBy(node);
      return rows <= 51 ? [] : [`${title}: ${rows} rows by ${node['Index Name']}`];
    }),
  ];
}
