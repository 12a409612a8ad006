import type { QueryRunner } from 'typeorm';
import { planOf, touchedBy } from '@app/testing/database/plan';
import { DELETE_PEOPLE, FIND_NOTIFICATIONS, NEXT_ORGANIZATIONS, OLDEST, ORDER, REWRITE_NOTIFICATIONS, TAKE } from './erasure.sql';
import { FORGET_ERASURES } from './retention.repository';
import { connectForPlans } from '../../test/notifications';

const MANY = 4_000;
const FEW = 20;
/** Name; user and organization of row n. */
const DISTRIBUTIONS: [string, string, string][] = [
  ['of many users of one organization', `'u' || n`, '1'],
  ['of one user among few', `CASE n % 200 WHEN 0 THEN 'u1' ELSE 'busy' END`, '1'],
  ['of thousands of organizations', `'u' || n % 10`, 'n'],
  [
    'one in five of one user of one organization, the others of thousands',
    `CASE n % 5 WHEN 0 THEN 'busy' ELSE 'u' || n % 10 END`,
    'CASE n % 5 WHEN 0 THEN 1 ELSE n END',
  ],
];
const CONTENT = '{"notifyUsers":[]}';
const ids = Array.from({ length: FEW }, (_, n) => `n${n * 7}`);
const repeated = (text: string) => `ARRAY[${ids.map(() => `'${text}'`).join()}]`;
const LATER = '9000000000000000';

/** Name, text, values, and the most rows that one of its scans may touch. Rows of the erased user are few. */
const STATEMENTS: [string, string, string, number][] = [
  ['take', TAKE, `10000, ${LATER}, ''`, 2],
  ['oldest', OLDEST, '', 2],
  ['forget', FORGET_ERASURES, '100', 2],
  ['order', ORDER.text, `'later', 'tenant', '{u1,u2}', NULL, 5, 5`, 2],
  ['refused event', ORDER.text, `'event', 'tenant', '{u1,u2}', NULL, 5, 5`, 2],
  ['next organizations', NEXT_ORGANIZATIONS, `'tenant', NULL, 'o5', true, ${FEW}`, FEW],
  ['named organizations', NEXT_ORGANIZATIONS, `'tenant', '{o5,o7,unknown}', '', false, ${FEW}`, 3],
  ['people', DELETE_PEOPLE, `'{1,2}', '{u1,u2}', ${LATER}, ${LATER}`, 2 * FEW],
  ['find', FIND_NOTIFICATIONS, `1, '', ${FEW}, 100000, ARRAY['"u1"'], ${LATER}, '{u2,u3}'`, FEW],
  [
    'rewrite',
    REWRITE_NOTIFICATIONS,
    `1, '{${ids.join()}}', ${repeated(CONTENT)}, ${repeated('{"notifyUsers":[ ]}')}, '{u1,u2}'`,
    FEW,
  ],
];

let runner: QueryRunner;
connectForPlans((one) => (runner = one));

async function fill(user: string, organization: string): Promise<void> {
  const n = `FROM generate_series(1, ${MANY}) n`;
  await runner.query(`INSERT INTO organizations (api_key, organization_id) SELECT 'tenant', 'o' || n ${n}`);
  await runner.query(
    `INSERT INTO notifications SELECT ${organization}, 'n' || n, n, 'doc', NULL, false, 18, '\\x00', '${CONTENT}' ${n}`,
  );
  await runner.query(`INSERT INTO recipients SELECT ${organization}, ${user}, n, 'n' || n, 'doc' ${n}`);
  await runner.query(`INSERT INTO readings SELECT ${organization}, ${user}, n, 'n' || n, true, -1 ${n}`);
  await runner.query(`INSERT INTO members SELECT ${organization}, ${user}, 'document', 'd' || n, 1 ${n}`);
  for (const [table, values] of [
    ['departures', '1'],
    ['read_marks', '1, 1'],
  ])
    await runner.query(`INSERT INTO ${table} SELECT DISTINCT organization, user_id, ${values} FROM members`);
  await runner.query('INSERT INTO complete_members SELECT DISTINCT organization, user_id FROM members');
  await runner.query(ORDER.text, ['event', 'tenant', ['u1'], null, 1, 1]);
  await runner.query(
    `INSERT INTO erasures (id, api_key, version, up_to, received_at) SELECT 'complete' || n, 'tenant', 1, 1, now() - n * interval '1 min' ${n}`,
  );
}

async function plan(): Promise<void> {
  for (const [name, text, values] of STATEMENTS) {
    await runner.query(`PREPARE "${name}" AS ${text}`);
    await runner.query(`EXPLAIN EXECUTE "${name}" ${values && `(${values})`}`);
  }
}

async function problems(): Promise<string[]> {
  const found = [];
  for (const [name, , values, most] of STATEMENTS) {
    await runner.startTransaction();
    const nodes = await planOf(runner, `EXECUTE "${name}" ${values && `(${values})`}`);
    await runner.rollbackTransaction();
    const scans = nodes.filter((node) => node['Relation Name'] && node['Node Type'].includes('Scan'));
    for (const node of scans)
      if (touchedBy(node) > most)
        found.push(`${name}: ${touchedBy(node)} rows of ${node['Relation Name']} by ${node['Index Name'] ?? node['Node Type']}`);
  }
  return found;
}

describe.each(DISTRIBUTIONS)('rows %s', (_, user, organization) => {
  it('are erased one by one, planned when the tables are full', async () => {
    await fill(user, organization);
    await runner.query('VACUUM (ANALYZE)');
    await plan();
    expect(await problems()).toEqual([]);
  });

  it('are erased one by one, planned when the tables are empty', async () => {
    await plan();
    await fill(user, organization);
    expect(await problems()).toEqual([]);
    // The plans are made anew.
    await runner.query('ANALYZE');
    expect(await problems()).toEqual([]);
  });
});
