import type { DataSource } from 'typeorm';
import { pageQuery, type PageFilter } from './pages.repository';
import { COMBINATIONS, connectTestDatabase } from '../../test/notifications';

const MANY = 20_000;
const BUSY = 5;
const ALL = () => `'busy'`;
const ONE_IN_FIVE = (column: string) => `CASE n % ${BUSY} WHEN 0 THEN 'busy' ELSE '${column}' || n END`;
/** What a column has for notification n, and how many other organizations there are, each with one notification. */
const DISTRIBUTIONS = [
  ['all there is', ALL, 0],
  ['one in five, the others of thousands', ONE_IN_FIVE, 0],
  ['all of one organization among thousands', ALL, MANY],
  ['one in five of one organization, the others of thousands', ONE_IN_FIVE, MANY],
] as const;
const CASES = COMBINATIONS.map((combination) => [combination.join(' + '), combination] as const);

describe.each(DISTRIBUTIONS)('with a user, a document and a location of %s', (_, valueOf, others) => {
  let database: Awaited<ReturnType<typeof connectTestDatabase>>;
  let dataSource: DataSource;

  beforeAll(async () => {
    database = await connectTestDatabase();
    [dataSource] = database.dataSources as [DataSource];
    const [organization] = await dataSource.query<{ id: string }[]>(
      `INSERT INTO organizations (api_key, organization_id) VALUES ('tenant', 'org') RETURNING id`,
    );
    const [user, document, location] = ['user', 'document', 'location'].map(valueOf);
    await dataSource.query(
      `INSERT INTO notifications (organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content)
       SELECT $1, 'm' || n, n, ${document}, ${location}, n % 20 = 0, 2, '\\x00', '{}' FROM generate_series(1, ${MANY}) n`,
      [organization?.id],
    );
    await dataSource.query(
      `INSERT INTO recipients (organization, user_id, "timestamp", notification_id, document_id, location_id)
       SELECT $1, ${user}, n, 'm' || n, ${document}, ${location} FROM generate_series(1, ${MANY}) n`,
      [organization?.id],
    );
    await dataSource.query(`
      WITH other AS (
        INSERT INTO organizations (api_key, organization_id) SELECT 'tenant', n FROM generate_series(1, ${others}) n RETURNING id
      ), added AS (
        INSERT INTO notifications (organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content)
        SELECT id, 'm', id, 'doc', 'loc', true, 2, '\\x00', '{}' FROM other
      )
      INSERT INTO recipients (organization, user_id, "timestamp", notification_id, document_id, location_id)
      SELECT id, 'user', id, 'm', 'doc', 'loc' FROM other`);
    await dataSource.query(`INSERT INTO members VALUES ($1, 'busy', 'organization', '')`, [organization?.id]);
    await dataSource.query('VACUUM (ANALYZE)');
  });
  afterAll(() => database.close());

  it.each(CASES)('reads little more than a page by %s, from an index', async (_, combination) => {
    const every = { documentId: 'busy', locationId: 'busy', userId: 'busy', ids: ['m5', 'm10', 'm20'] };
    const filter: PageFilter = { apiKey: 'tenant', organizationId: 'org' };
    for (const key of combination) Object.assign(filter, { [key]: every[key as keyof typeof every] });
    const indexes = combination.includes('ids') ? /^(notifications_pkey|recipients_pkey|recipients_by_document)$/ : /./;
    for (const after of [undefined, { timestamp: MANY / 2, notificationId: `m${MANY / 2}` }])
      await requireLittleRead(pageQuery(filter, { newestFirst: true, size: 50, after }), indexes);
  });

  async function requireLittleRead(query: ReturnType<typeof pageQuery>, indexes: RegExp): Promise<void> {
    const nodes = flatten(await planOf(query));
    const scans = nodes.filter(({ 'Relation Name': relation }) => relation === 'notifications' || relation === 'recipients');
    // What an index has read to find its rows is nowhere told: ids are looked up where all of the key is given.
    for (const scan of scans) expect(scan['Index Name']).toMatch(indexes);
    // Rows that a scan produced or threw away, over all its loops.
    const touched = scans.map((node) => node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)));
    // A page, one to see that there are more, and where a range begins that is filtered: all there is needs no index of documents.
    expect(Math.max(...touched)).toBeLessThanOrEqual(51 + 2);
  }

  async function planOf({ text, values }: ReturnType<typeof pageQuery>): Promise<PlanNode | undefined> {
    const runner = dataSource.createQueryRunner();
    try {
      await runner.query(`PREPARE page AS ${text}`);
      const literals = values.map((value) => (Array.isArray(value) ? `'{${value.join()}}'` : `'${String(value)}'`));
      const plans = (await runner.query(`EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) EXECUTE page (${literals.join()})`)) as {
        'QUERY PLAN': PlanRoot[];
      }[];
      return plans[0]?.['QUERY PLAN'][0]?.Plan;
    } finally {
      await runner.query('DEALLOCATE ALL');
      await runner.release();
    }
  }
});

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Actual Loops': number;
  'Actual Rows': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}
interface PlanRoot {
  Plan: PlanNode;
}

const flatten = (node: PlanNode | undefined): PlanNode[] => (node ? [node, ...(node.Plans ?? []).flatMap(flatten)] : []);
