import type { QueryRunner } from 'typeorm';
import { planOf, touchedBy } from '@app/testing/plan';
import { pageQuery, type PageFilter } from './pages.repository';
import { COMBINATIONS, connectForPlans } from '../../test/notifications';

const MANY = 20_000;
const ALL = () => `'busy'`;
const ONE_IN_FIVE = (column: string) => `CASE n % 5 WHEN 0 THEN 'busy' ELSE '${column}' || n END`;
type Distribution = (column: string) => string;
/** Name, column values for notification n, and the number of other organizations, each with one notification. */
const DISTRIBUTIONS: [string, Distribution, number][] = [
  ['all there is', ALL, 0],
  ['one in five, the others of thousands', ONE_IN_FIVE, 0],
  ['all of one organization among thousands', ALL, MANY],
  ['one in five of one organization, the others of thousands', ONE_IN_FIVE, MANY],
];
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

let database: Awaited<ReturnType<typeof connectForPlans>>;
let runner: QueryRunner;

beforeEach(async () => {
  database = await connectForPlans();
  ({ runner } = database);
});
afterEach(() => database.close());

it.each(DISTRIBUTIONS)(
  'pages of a user, a document and a location with %s read an index range and few other rows',
  async (...given) => {
    await store(...given);
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
  await store(...DISTRIBUTIONS[1]);
  const problems = [];
  for (const [page, execute] of planned) problems.push(...(await problemsOf(page, execute)));
  expect(problems).toEqual([]);
});

async function store(_: string, valueOf: Distribution, others: number): Promise<void> {
  const [organization] = (await runner.query(
    `INSERT INTO organizations (api_key, organization_id) VALUES ('tenant', 'org') RETURNING id`,
  )) as { id: string }[];
  const [user, document, location] = ['user', 'document', 'location'].map(valueOf);
  await runner.query(
    `INSERT INTO notifications (organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content)
     SELECT $1, 'm' || n, n, ${document}, ${location}, n % 20 = 0, 2, '\\x00', '{}' FROM generate_series(1, ${MANY}) n`,
    [organization?.id],
  );
  await runner.query(
    `INSERT INTO recipients (organization, user_id, "timestamp", notification_id, document_id, location_id)
     SELECT $1, ${user}, n, 'm' || n, ${document}, ${location} FROM generate_series(1, ${MANY}) n`,
    [organization?.id],
  );
  await runner.query(`
    WITH other AS (
      INSERT INTO organizations (api_key, organization_id) SELECT 'tenant', n FROM generate_series(1, ${others}) n RETURNING id
    ), added AS (
      INSERT INTO notifications (organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content)
      SELECT id, 'm', id, 'doc', 'loc', true, 2, '\\x00', '{}' FROM other
    )
    INSERT INTO recipients (organization, user_id, "timestamp", notification_id, document_id, location_id)
    SELECT id, 'user', id, 'm', 'doc', 'loc' FROM other`);
  // The user sees the document in two ways: notifyAll rows are read for each of them. Many others have ended.
  await runner.query(`INSERT INTO members VALUES ($1, 'busy', 'organization', '', 2), ($1, 'busy', 'document', 'busy', 2)`, [
    organization?.id,
  ]);
  await runner.query(
    `INSERT INTO members SELECT $1, 'busy', CASE n % 2 WHEN 0 THEN 'document' ELSE 'folder' END, 'ended' || n, 1, 2
     FROM generate_series(1, 2000) n`,
    [organization?.id],
  );
}

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
