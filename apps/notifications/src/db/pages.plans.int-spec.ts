import type { QueryRunner } from 'typeorm';
import { planOf, touchedBy } from '@app/testing/database/plan';
import { BUDGETS, inboxQuery } from './inbox.sql';
import { pageQuery, type PageFilter } from './pages.repository';
import { MOST_LOOKED_AT } from './visibility.sql';
import { DISTRIBUTIONS, MANY, store } from '../../test/distributions';
import { COMBINATIONS, connectForPlans } from '../../test/notifications';

const BY_DOCUMENT = 'notifications_to_all_by_document';

/** Indexes that a page of each combination must read. Afterwards each notification is looked up by its key. */
const INDEXES: Record<string, string[]> = {
  documentId: ['notifications_by_document'],
  'documentId + ids': ['notifications_pkey'],
  'documentId + locationId': ['notifications_by_location'],
  'documentId + locationId + ids': ['notifications_pkey'],
  userId: ['notifications_to_all', BY_DOCUMENT, 'recipients_pkey', BY_DOCUMENT],
  'userId + ids': ['notifications_pkey', 'recipients_pkey or recipients_by_document'],
  'documentId + userId': ['recipients_by_document', BY_DOCUMENT, BY_DOCUMENT],
  'locationId + userId': ['notifications_to_all_by_location', 'recipients_by_location', `${BY_DOCUMENT}_location`],
  'documentId + locationId + userId': ['recipients_by_document_location', `${BY_DOCUMENT}_location`, `${BY_DOCUMENT}_location`],
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

describe('pages of a user of many documents', () => {
  const [documents, ofEach] = [200, 100];
  const reader = { apiKey: 'tenant', organizationId: 'org', userId: 'reader' };
  const newest = { newestFirst: true, size: 50 };
  const after = { timestamp: 10_000, notificationId: '' };
  const statements = [
    pageQuery(reader, newest),
    pageQuery(reader, { ...newest, after }),
    pageQuery(reader, { newestFirst: false, size: 50 }),
    pageQuery(reader, { newestFirst: false, size: 50, after }),
    inboxQuery(reader, newest),
    inboxQuery(reader, { ...newest, after }),
    inboxQuery({ ...reader, unread: true }, newest, undefined, 200),
    inboxQuery({ ...reader, unread: true }, { ...newest, after }, undefined, 200),
  ];

  /** The last document has all of the newest and of the oldest ones. */
  async function fill(): Promise<void> {
    const [{ id }] = (await runner.query(
      `INSERT INTO organizations (api_key, organization_id) VALUES ('tenant', 'org') RETURNING id`,
    )) as [{ id: string }];
    await runner.query(
      `INSERT INTO notifications (organization, id, "timestamp", document_id, notify_all, size, fingerprint, content)
       SELECT $1, 'm' || n, n, 'd' || CASE WHEN n % 10000 < 300 THEN 0 ELSE n % ${documents} END, true, 2, '\\x00', '{"notifyUsers":[]}'
       FROM generate_series(1, ${documents * ofEach}) n`,
      [id],
    );
    await runner.query(
      `INSERT INTO members SELECT $1, 'reader', 'document', 'd' || n, 2 FROM generate_series(0, ${documents - 1}) n`,
      [id],
    );
  }

  it.each(['of empty tables', 'new'])('read little of each, with plans %s', async (plans) => {
    const executes: string[] = [];
    for (const [number, { text, values }] of statements.entries()) {
      await runner.query(`PREPARE s${number} AS ${text}`);
      executes.push(`EXECUTE s${number} (${values.map((value) => `'${String(value)}'`).join()})`);
      if (plans === 'of empty tables') await runner.query(`EXPLAIN ${executes[number]}`);
    }
    await fill();
    if (plans === 'new') await runner.query('VACUUM (ANALYZE)');
    const read = [];
    for (const execute of executes) {
      const scans = (await planOf(runner, execute)).filter((node) => node['Index Name']?.startsWith('notifications_to_all'));
      read.push(scans.reduce((sum, node) => sum + touchedBy(node), 0));
    }
    // One scan for each document would read 10,200, or 40,200 for unread ones.
    expect(read.filter((rows) => rows > 1000)).toEqual([]);
  });
});

describe('pages beside notifications to all in restricted documents, and of a guest of many documents', () => {
  const member = { apiKey: 'tenant', organizationId: 'org', userId: 'busy' };
  const newest = { newestFirst: true, size: 50 };
  const guest = { ...member, userId: 'guest' };
  const ofSecret = { ...member, documentId: 'secret' };
  // Name, statement, and the most notifications, and answers about documents, that one of its scans may read.
  const statements = [
    ['page', pageQuery(member, newest), MOST_LOOKED_AT + 1],
    ['oldest first', pageQuery(member, { ...newest, newestFirst: false }), MOST_LOOKED_AT + 1],
    ['inbox', inboxQuery(member, newest), MOST_LOOKED_AT + 1],
    ['page of the guest', pageQuery(guest, newest), MOST_LOOKED_AT + 1],
    ['inbox of the guest', inboxQuery(guest, newest), MOST_LOOKED_AT + 1],
    ['unread ones of the guest', inboxQuery({ ...guest, unread: true }, newest), MOST_LOOKED_AT + 1],
    ['page of the document', pageQuery(ofSecret, newest), 51],
    // The count looks at more.
    ['inbox of the document', inboxQuery(ofSecret, newest), BUDGETS.toAll + 1],
  ] as const;

  async function fill(): Promise<void> {
    const id = await store(runner, DISTRIBUTIONS[1]);
    await runner.query(`UPDATE notifications SET notify_all = true, document_id = 'secret' WHERE organization = $1`, [id]);
    await runner.query(`INSERT INTO document_access VALUES ($1, 'secret', NULL, 'restricted', 1)`, [id]);
    await runner.query(
      `INSERT INTO document_access SELECT $1, 'public' || n, NULL, 'public', 1 FROM generate_series(1, ${2 * MOST_LOOKED_AT}) n`,
      [id],
    );
  }

  it.each(['of empty tables', 'new'])('look at a limited number, with plans %s', async (plans) => {
    const executes: string[] = [];
    for (const [name, { text, values }] of statements) {
      await runner.query(`PREPARE "${name}" AS ${text}`);
      executes.push(`EXECUTE "${name}" (${values.map((value) => `'${String(value)}'`).join()})`);
      if (plans === 'of empty tables') await runner.query(`EXPLAIN ${executes.at(-1)}`);
    }
    await fill();
    if (plans === 'new') await runner.query('VACUUM (ANALYZE)');
    const problems = [];
    for (const [number, [name, , most]] of statements.entries())
      for (const node of await planOf(runner, executes[number]))
        if (['notifications', 'document_access'].includes(node['Relation Name'] ?? '') && touchedBy(node) > most + 1)
          problems.push(`${name}: ${touchedBy(node)} rows by ${node['Index Name']}`);
    expect(problems).toEqual([]);
  });
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
