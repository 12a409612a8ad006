import { planOf, touchedBy } from '@app/testing/plan';
import { inboxQuery, type InboxFilter } from './inbox.sql';
import { connectForPlans } from '../../test/notifications';

const MANY = 20_000;
const BIG = ['notifications', 'recipients', 'readings'];
/** Rows of a page of 50, or of a count that ends at 100, and one more. */
const PAGE = 51;
const COUNT = 101;

it('reads a page and a count, even with plans from when the tables were empty', async () => {
  const { runner, close } = await connectForPlans();
  const cases = [{}, { documentId: 'd1' }, { locationId: 'l1' }, { documentId: 'd1', locationId: 'l1' }].flatMap((filters) =>
    [false, true].flatMap((unread) => [50, 0].map((size) => ({ filter: { ...filters, unread }, size }))),
  );
  const statements: [string, string][] = [];
  for (const { filter, size } of cases) {
    const given: InboxFilter = { apiKey: 'tenant', organizationId: 'org', userId: 'u', ...filter };
    const { text, values } = inboxQuery(given, { size });
    const title = JSON.stringify({ ...filter, size });
    await runner.query(`PREPARE "${title.replaceAll('"', "'")}" AS ${text}`);
    statements.push([title, `EXECUTE "${title.replaceAll('"', "'")}" (${values.map((value) => `'${String(value)}'`).join()})`]);
    await runner.query(`EXPLAIN ${statements.at(-1)?.[1]}`);
  }
  const [{ id }] = (await runner.query(
    `INSERT INTO organizations (api_key, organization_id) VALUES ('tenant', 'org') RETURNING id`,
  )) as { id: string }[];
  await runner.query(
    `INSERT INTO notifications (organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content)
     SELECT $1, 'm' || n, n, 'd' || n % 4, 'l' || n % 4, n % 20 = 1, 2, '\\x00', '{}' FROM generate_series(1, ${MANY}) n`,
    [id],
  );
  await runner.query(
    `INSERT INTO recipients SELECT $1, CASE n % 5 WHEN 0 THEN 'other' ELSE 'u' END, n, 'm' || n, 'd' || n % 4, 'l' || n % 4
     FROM generate_series(1, ${MANY}) n`,
    [id],
  );
  await runner.query(`INSERT INTO members VALUES ($1, 'u', 'organization', ''), ($1, 'u', 'document', 'd1')`, [id]);
  // One notification to all was read by many, singly.
  await runner.query(
    `INSERT INTO readings SELECT $1, 'u' || n, ${MANY - 19}, 'm${MANY - 19}', true, -1 FROM generate_series(1, ${MANY}) n`,
    [id],
  );
  await runner.query('ANALYZE');
  const problems: string[] = [];
  for (const mark of [-1, MANY - 30]) {
    await runner.query(`DELETE FROM read_marks`);
    if (mark >= 0) await runner.query(`INSERT INTO read_marks VALUES ($1, 'u', $2, $2)`, [id, mark]);
    for (const [title, execute] of statements)
      for (const node of await planOf(runner, execute)) {
        const rows = touchedBy(node);
        const isUnread = title.includes('"unread":true');
        const most = isUnread ? 2001 : PAGE + COUNT;
        if (BIG.includes(node['Relation Name'] ?? '') && rows > most)
          problems.push(`${mark} ${title}: ${rows} rows by ${node['Index Name']}`);
      }
  }
  await close();
  expect(problems).toEqual([]);
});
