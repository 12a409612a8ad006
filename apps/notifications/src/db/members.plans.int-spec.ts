import type { DataSource, QueryRunner } from 'typeorm';
import { planOf, touchedBy } from '@app/testing/database/plan';
import { WALKS } from './distrust.repository';
import { MembersRepository, type ChangedMember } from './members.repository';
import { connectForPlans } from '../../test/notifications';

const MANY = 4_000;
/** Name; user, document and organization of membership n. */
const DISTRIBUTIONS: [string, string, string, string][] = [
  ['of one document', `'u' || n`, `'busy'`, '1'],
  ['one in five of one document', `'u' || n`, `CASE n % 5 WHEN 0 THEN 'busy' ELSE 'd' || n END`, '1'],
  ['of one user', `'busy'`, `'d' || n`, '1'],
  ['of thousands of organizations', `'u' || n % 10`, `'busy'`, 'n'],
];
const USERS: ChangedMember[] = Array.from({ length: 20 }, (_, index) => ({ userId: `u${index * 5}`, version: 7 }));
const PAGE = 100;

interface Statement {
  name: string;
  text: string;
  values: string;
  /** Most rows that one of its scans may touch. */
  most: number;
}

let runner: QueryRunner;
connectForPlans((one) => (runner = one));

describe.each(DISTRIBUTIONS)('the copy of memberships %s', (_, user, document, organization) => {
  it.each(['planned when it is full', 'planned when it is empty'])('is changed row by row, %s', async (planned) => {
    const prepared = async () => {
      const statements = await captured();
      for (const { name, text } of statements) await runner.query(`PREPARE "${name}" AS ${text}`);
      for (const { name, values } of statements) await runner.query(`EXPLAIN EXECUTE "${name}" (${values})`);
      return statements;
    };
    let statements = planned.endsWith('empty') ? await prepared() : undefined;
    await runner.query(
      `INSERT INTO organizations (api_key, organization_id) SELECT 'tenant', 'org' || n FROM generate_series(1, ${MANY}) n`,
    );
    await runner.query(
      `INSERT INTO members SELECT ${organization}, ${user}, 'document', ${document}, 1 FROM generate_series(1, ${MANY}) n ON CONFLICT DO NOTHING`,
    );
    await runner.query(`INSERT INTO complete_members SELECT DISTINCT organization, user_id FROM members`);
    await runner.query(`INSERT INTO departures SELECT DISTINCT organization, user_id, 0 FROM members`);
    if (statements) expect(await problemsOf(statements)).toEqual([]);
    // Plans are made anew.
    await runner.query('VACUUM (ANALYZE)');
    statements ??= await prepared();
    expect(await problemsOf(statements)).toEqual([]);
  });
});

async function problemsOf(statements: readonly Statement[]): Promise<string[]> {
  const problems = [];
  for (const { name, values, most } of statements) {
    await runner.startTransaction();
    const nodes = await planOf(runner, `EXECUTE "${name}" (${values})`);
    await runner.rollbackTransaction();
    const scans = nodes.filter((node) => node['Relation Name'] && node['Node Type'].includes('Scan'));
    for (const node of scans)
      if (touchedBy(node) > most) problems.push(`${name}: ${touchedBy(node)} rows of ${node['Relation Name']}`);
  }
  return problems;
}

/** Every statement on the copy, as the repositories send it. */
async function captured(): Promise<Statement[]> {
  const sent: { text: string; values: unknown[] }[] = [];
  const query = (asked: string | { text: string; values: unknown[] }, values: unknown[] = []) => {
    sent.push(typeof asked === 'string' ? { text: asked, values } : asked);
    return Promise.resolve(typeof asked === 'string' ? [] : { rows: [] });
  };
  const client = { connect: () => Promise.resolve({ query }), release: () => Promise.resolve(), isReleased: false };
  const members = new MembersRepository({ query, createQueryRunner: () => client } as unknown as DataSource);
  const [tenant, organization] = ['tenant', 'org1'];
  const level = { level: 'document', id: 'busy' } as const;
  const memberships = USERS.map(({ version }, index) => ({ level: 'document' as const, id: `d${index}`, version }));
  const wrong = memberships.map(({ id }) => ({ level: 'document' as const, id: `${id}000`, added: '1' }));
  const calls: [string, () => Promise<unknown>][] = [
    ['add', () => members.add(tenant, organization, level, USERS)],
    [
      'add without versions',
      () =>
        members.add(
          tenant,
          organization,
          level,
          USERS.map(({ userId }) => ({ userId })),
        ),
    ],
    ['remove', () => members.remove(tenant, organization, level, USERS)],
    ['leave', () => members.leave(tenant, organization, USERS)],
    ['find', () => members.find(tenant, organization, 'u5')],
    ['known', () => members.known(tenant, organization, 'u5', { most: 40 })],
    ['known of one', () => members.known(tenant, organization, 'busy', { most: 40 })],
    ['known later', () => members.known(tenant, organization, 'busy', { after: { level: 'document', id: 'd2' }, most: 40 })],
    ['is known', () => members.isKnown(tenant, organization, 'busy')],
    ['complete', () => members.complete(tenant, organization, 'busy', { memberships, left: 3, wrong })],
  ];
  const statements = [];
  for (const [name, call] of calls) {
    await call();
    statements.push({ ...sent.pop()!, name, most: 2 * USERS.length });
  }
  // The walk over departures resets all memberships of its users.
  for (const [name, { start, text }] of Object.entries(WALKS))
    statements.push({ name: `walk ${name}`, text, values: [PAGE, ...start], most: name === 'departures' ? MANY : 2 * PAGE });
  return statements.map(({ values, ...rest }) => ({ ...rest, values: values.map(literal).join() }));
}

const literal = (value: unknown): string => {
  if (value === null) return 'NULL';
  if (Array.isArray(value)) return `'{${value.map((one) => (one === null ? 'NULL' : String(one))).join()}}'`;
  return `'${value as string | number}'`;
};
