import { randomUUID } from 'node:crypto';
import type { DataSource, QueryRunner } from 'typeorm';
import { planOf, prepareForPlans, touchedBy } from '@app/testing/database/plan';
import { AccessRepository } from './access.repository';
import { eraseEverywhere } from './erase-users.sql';
import { MembersRepository } from './members.repository';
import { erasureSteps, LEVELS, statements, USERS, type Statement } from '../../test/statements';
import { connectTestDatabase } from '../../test/users';

const MANY = 20_000;
type Distribution = (prefix: string) => string;
const ALL: Distribution = () => `'busy'`;
const ONE_IN_FIVE: Distribution = (prefix) => `CASE n % 5 WHEN 0 THEN 'busy' ELSE '${prefix}' || n END`;
/** Name, folder or document of membership n, and the number of other organizations, each with one member. */
const DISTRIBUTIONS: [string, Distribution, number][] = [
  ['in one folder and document', ALL, 0],
  ['one in five in one, the others in thousands', ONE_IN_FIVE, 0],
  ['of one organization among thousands', ALL, MANY],
  ['one in five of one organization, the others in thousands', ONE_IN_FIVE, MANY],
];
const TABLES = /^(users|(organization|folder|document)_members|organizations|folders|documents)$/;
/** A page, its users, and the row that shows whether there are more. */
const MOST = 3 * 51;
/** Rows of one id that a step of an erasure looks through. */
const MOST_OF_AN_ID = 5000;
/** The same when nine in ten members have left. */
const MOST_OF_LEFT = 11 * 51;

let dataSource: DataSource;
let close: (() => Promise<void>) | undefined;
let runner: QueryRunner;

beforeEach(async () => {
  ({ dataSource, close } = await connectTestDatabase());
  runner = dataSource.createQueryRunner();
  await prepareForPlans(runner);
  await runner.query(`INSERT INTO api_keys (key, name) VALUES ('one', '')`);
});
afterEach(async () => {
  await runner.release();
  await close?.();
});

it.each(DISTRIBUTIONS)('members %s: reads and changes touch the rows that they name', async (...given) => {
  const planned = await prepared(await statements());
  for (const { execute } of planned) await runner.query(`EXPLAIN ${execute}`);
  await store(...given);
  expect(await problemsOf(planned)).toEqual([]);
  // The plans are made anew: until now they are those of the empty tables.
  await runner.query('VACUUM (ANALYZE)');
  expect(await problemsOf(planned)).toEqual([]);
});

it('a page of a level from which nine in ten have left looks at ten members for each user', async () => {
  await store(...DISTRIBUTIONS[0]);
  await runner.query(`UPDATE users SET left_version = 9000000000 WHERE right(user_id, 1) <> '0'`);
  await runner.query('VACUUM (ANALYZE)');
  const pages = (await statements()).filter(({ name }) => name.includes('contacts of'));
  expect(pages).toHaveLength(3 * LEVELS.length);
  expect(await problemsOf(await prepared(pages), MOST_OF_LEFT)).toEqual([]);
});

it.each(DISTRIBUTIONS)('members %s: a page of the memberships of a user is a range of each index', async (...given) => {
  const ofOne = `SELECT o.id, 'of u5 ' || lpad(n::text, 5, '0') FROM organizations o, generate_series(1, 2000) n
    WHERE api_key = 'one' AND organization_id = 'org'`;
  const sent: Statement[] = [];
  const query = (text: string, values: unknown[]) => Promise.resolve((sent.push({ name: '', text, values }), [{ left: null }]));
  const access = new AccessRepository({ query } as unknown as DataSource);
  const user = { apiKey: 'one', organizationId: 'org', userId: 'u5' };
  await access.memberships(user, { limit: 50 });
  await access.memberships(user, { limit: 50, after: { level: 'document', id: 'of u5 01500' } });
  await access.memberships(user, { limit: 50, after: { level: 'folder', id: 'of u5 01500' } });
  const planned = await prepared(sent.map((one, page) => ({ ...one, name: `page ${page}` })));
  await store(...given);
  for (const level of ['document', 'folder']) {
    await runner.query(`INSERT INTO ${level}s ${ofOne}`);
    const id = `${level}_id`;
    await runner.query(`INSERT INTO ${level}_members SELECT organization, ${id}, 'u5' FROM ${level}s WHERE ${id} LIKE 'of u5 %'`);
  }
  for (const statistics of ['of the empty tables', 'new']) {
    if (statistics === 'new') await runner.query('ANALYZE');
    expect([statistics, await problemsOf(planned, 51)]).toEqual([statistics, []]);
    for (const { execute } of planned) {
      const indexes = (await planOf(runner, execute)).flatMap((node) => node['Index Name'] ?? []);
      expect(indexes).toEqual(expect.arrayContaining(['document_members_by_user', 'folder_members_by_user']));
    }
  }
});

it('an erasure looks at few of the users with the same id that other tenants have', async () => {
  const begin = eraseEverywhere(1000);
  const values = ['one', USERS, null, 'users.erase', randomUUID(), Buffer.alloc(1), null];
  const planned = await prepared([{ ...begin, values }, ...(await erasureSteps(USERS))]);
  await store(...DISTRIBUTIONS[0]);
  await runner.query(`
    WITH tenant AS (
      INSERT INTO api_keys (key, name) VALUES ('two', '') RETURNING key
    ), other AS (
      INSERT INTO organizations (api_key, organization_id) SELECT key, n FROM tenant, generate_series(1, ${MANY}) n RETURNING id
    )
    INSERT INTO users (organization, user_id, initial_generated) SELECT id, 'u50', true FROM other`);
  // These users were there long before.
  await runner.query(`INSERT INTO version_times VALUES ('2026-01-01', 0, 0)`);
  for (const statistics of ['of the empty tables', 'new']) {
    if (statistics === 'new') await runner.query('ANALYZE');
    expect([statistics, await problemsOf(planned, MOST_OF_AN_ID)]).toEqual([statistics, []]);
    await runner.startTransaction();
    const ofNext = (await planOf(runner, planned[1].execute)).filter((node) => node['Relation Name'] === 'organizations');
    expect(ofNext.map(touchedBy)).toEqual([0, 0]);
    const ofBegin = await planOf(runner, planned[0].execute);
    await runner.rollbackTransaction();
    // The organizations of the tenant are looked at for this id only.
    const inOrganizations = ofBegin.filter((node) => node['Index Cond']?.includes('= ANY'));
    expect([statistics, inOrganizations.map(touchedBy)]).toEqual([statistics, [1]]);
  }
});

it('an add with one user is planned once for each connection', async () => {
  const members = new MembersRepository(dataSource);
  const add = (userId: string) =>
    members.add({ apiKey: 'one', organizationId: 'org', level: LEVELS[0], users: [{ userId, initialGenerated: true }] });
  for (const userId of USERS) expect(await add(userId)).toEqual({ outcome: 'stored', added: [userId] });
  // The runner has the other connection of the pool.
  const plans = 'SELECT name, custom_plans::int AS custom, generic_plans::int AS generic FROM pg_prepared_statements';
  expect(await dataSource.query(plans)).toEqual([{ name: 'add-organization-members', custom: 0, generic: USERS.length }]);
});

async function store(_: string, valueOf: Distribution, others: number): Promise<void> {
  const [folder, document] = ['folder', 'document'].map(valueOf);
  const [{ id }] = (await runner.query(
    `INSERT INTO organizations (api_key, organization_id) VALUES ('one', 'org') RETURNING id`,
  )) as [{ id: string }];
  const rows = `SELECT $1::bigint AS organization, 'u' || n AS user_id, ${folder} AS folder, ${document} AS document
    FROM generate_series(0, ${MANY - 1}) n`;
  await runner.query(
    `INSERT INTO users (organization, user_id, initial_generated) SELECT organization, user_id, true FROM (${rows}) r`,
    [id],
  );
  await runner.query(`INSERT INTO folders SELECT DISTINCT organization, folder FROM (${rows}) r`, [id]);
  await runner.query(`INSERT INTO documents SELECT DISTINCT organization, document FROM (${rows}) r`, [id]);
  await runner.query(`INSERT INTO organization_members SELECT organization, user_id FROM (${rows}) r`, [id]);
  await runner.query(`INSERT INTO folder_members SELECT organization, folder, user_id FROM (${rows}) r`, [id]);
  await runner.query(`INSERT INTO document_members SELECT organization, document, user_id FROM (${rows}) r`, [id]);
  await runner.query(`
    WITH other AS (
      INSERT INTO organizations (api_key, organization_id) SELECT 'one', n FROM generate_series(1, ${others}) n RETURNING id
    ), people AS (
      INSERT INTO users (organization, user_id, initial_generated) SELECT id, 'u0', true FROM other
    )
    INSERT INTO organization_members SELECT id, 'u0' FROM other`);
}

const literal = (value: unknown): string => {
  if (value === null) return 'NULL';
  if (Array.isArray(value)) return `'{${value.map((one) => (one === null ? 'NULL' : String(one))).join()}}'`;
  return value instanceof Buffer ? `'\\x${value.toString('hex')}'` : `'${value as string | number | boolean}'`;
};

/** With the settings of a users process: a plan does not depend on the values. */
async function prepared(given: readonly Statement[]): Promise<{ name: string; execute: string }[]> {
  for (const { name, text } of given) await runner.query(`PREPARE "${name}" AS ${text}`);
  return given.map(({ name, values }) => ({ name, execute: `EXECUTE "${name}" (${values.map(literal).join()})` }));
}

async function problemsOf(given: readonly { name: string; execute: string }[], most = MOST): Promise<string[]> {
  const problems = [];
  for (const { name, execute } of given) {
    await runner.startTransaction();
    const nodes = await planOf(runner, execute);
    await runner.rollbackTransaction();
    const scans = nodes.filter((node) => TABLES.test(node['Relation Name'] ?? '') && node['Node Type'].includes('Scan'));
    if (scans.length === 0) problems.push(`${name}: nothing read`);
    for (const node of scans)
      if (touchedBy(node) > most)
        problems.push(
          `${name}: ${touchedBy(node)} rows of ${node['Relation Name']} by ${node['Index Name'] ?? node['Node Type']}`,
        );
  }
  return problems;
}
