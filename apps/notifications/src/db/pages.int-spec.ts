import * as fc from 'fast-check';
import type { DataSource } from 'typeorm';
import { InsertNotificationsRepository, type NewNotification } from './insert-notifications.repository';
import { MembersRepository } from './members.repository';
import { pageQuery, PagesRepository, type PageFilter, type PageWindow } from './pages.repository';
import { aNotification, connectTestDatabase } from '../../test/notifications';

const COMBINATIONS: (keyof PageFilter)[][] = [
  ['documentId'],
  ['documentId', 'ids'],
  ['documentId', 'locationId'],
  ['documentId', 'locationId', 'ids'],
  ['userId'],
  ['userId', 'ids'],
  ['documentId', 'userId'],
  ['locationId', 'userId'],
  ['documentId', 'locationId', 'userId'],
];

describe(PagesRepository.name, () => {
  let database: Awaited<ReturnType<typeof connectTestDatabase>>;
  let dataSource: DataSource;
  let pages: PagesRepository;
  let inserts: InsertNotificationsRepository;
  const all: NewNotification[] = [];
  const timestamps = new Map<string, number>();

  const choose = <T>(list: readonly T[], seed: number): T => list[seed % list.length];
  const identity = ({ apiKey, organizationId, id }: NewNotification) => JSON.stringify([apiKey, organizationId, id]);

  beforeAll(async () => {
    database = await connectTestDatabase();
    [dataSource] = database.dataSources as [DataSource];
    pages = new PagesRepository(dataSource);
    inserts = new InsertNotificationsRepository(dataSource);
    // Equal ids in two tenants and two organizations, in batches, so that many share a timestamp.
    for (let batch = 0; batch < 10; batch++) {
      const notifications = Array.from({ length: 40 }, (_, index) => {
        const number = batch * 40 + index;
        return aNotification({
          apiKey: choose(['tenant', 'other tenant'], number),
          organizationId: choose(['org', 'other org'], number >> 1),
          id: `n${String((number * 37) % 100).padStart(3, '0')}-${batch}`,
          documentId: choose(['doc1', 'doc2', 'doc3'], number >> 2),
          locationId: choose([undefined, 'loc1', 'loc2'], (number * 7) >> 3),
          notifyAll: number % 5 === 0,
          to: [[], ['u1'], ['u2'], ['u1', 'u2'], ['u3']][(number * 3) % 5],
        });
      }).filter((one, index, list) => list.findIndex((other) => identity(other) === identity(one)) === index);
      await inserts.insert(notifications);
      all.push(...notifications);
    }
    const rows = await dataSource.query<{ api_key: string; organization_id: string; id: string; timestamp: string }[]>(
      'SELECT o.api_key, o.organization_id, n.id, n.timestamp FROM notifications n JOIN organizations o ON o.id = n.organization',
    );
    for (const row of rows) timestamps.set(JSON.stringify([row.api_key, row.organization_id, row.id]), Number(row.timestamp));
    expect(timestamps.size).toBe(all.length);
    const members = new MembersRepository(dataSource);
    for (const apiKey of ['tenant', 'other tenant']) {
      for (const organizationId of ['org', 'other org']) {
        const add = (userId: string, level: 'organization' | 'folder' | 'document', id = '') =>
          members.add(apiKey, organizationId, { level, id }, [userId]);
        await add('u1', 'organization');
        await add('u2', 'document', 'doc1');
        await add('u2', 'folder', 'secret');
        await add('u3', 'folder', 'open');
        const document = (documentId: string, access: string, folderId?: string) =>
          members.setDocument(apiKey, organizationId, { documentId, access, folderId, version: 2 });
        await document('doc2', 'organizationPrivate', 'open');
        await document('doc3', 'restricted', 'secret');
        // Older than what is there: without effect.
        await members.setDocument(apiKey, organizationId, { documentId: 'doc3', access: 'public', version: 1 });
        if (apiKey === 'other tenant') await document('doc1', 'public');
      }
    }
  });
  afterAll(() => database.close());

  const canSee = (userId: string, { apiKey, documentId }: NewNotification): boolean =>
    (apiKey === 'other tenant' && documentId === 'doc1') ||
    ({ u1: ['doc1', 'doc2'], u2: ['doc1', 'doc3'], u3: ['doc2'] }[userId]?.includes(documentId) ?? false);

  /** The contract in a few lines: what a filter selects, newest first, then by id. */
  function expected(filter: PageFilter): string[] {
    return all
      .filter(
        (one) =>
          one.apiKey === filter.apiKey &&
          one.organizationId === filter.organizationId &&
          (filter.documentId === undefined || one.documentId === filter.documentId) &&
          (filter.locationId === undefined || one.locationId === filter.locationId) &&
          (filter.ids === undefined || filter.ids.includes(one.id)) &&
          (filter.userId === undefined ||
            (one.notifyAll && canSee(filter.userId, one)) ||
            one.content.notifyUsers.some(({ userId }) => userId === filter.userId)),
      )
      .sort((a, b) => (timestamps.get(identity(b)) ?? 0) - (timestamps.get(identity(a)) ?? 0) || (a.id < b.id ? 1 : -1))
      .map(({ id }) => id);
  }

  async function readAll(filter: PageFilter, window: Omit<PageWindow, 'after'>): Promise<string[]> {
    const found: string[] = [];
    let after: PageWindow['after'];
    for (;;) {
      const { notifications, more } = await pages.find(filter, { ...window, after });
      found.push(...notifications.map(({ id }) => id));
      const last = notifications.at(-1);
      if (!more || !last) return found;
      after = { timestamp: last.timestamp, notificationId: last.id };
    }
  }

  it.each(COMBINATIONS.map((combination) => [combination.join(' + '), combination] as const))(
    'selects, orders and pages by %s',
    async (_, combination) => {
      const filters = fc.record({
        apiKey: fc.constantFrom('tenant', 'other tenant'),
        organizationId: fc.constantFrom('org', 'other org', 'unknown'),
        documentId: fc.constantFrom('doc1', 'doc2', 'unknown'),
        locationId: fc.constantFrom('loc1', 'loc2', 'unknown'),
        userId: fc.constantFrom('u1', 'u2', 'u3', 'unknown'),
        ids: fc.array(fc.constantFrom(...all.map(({ id }) => id), 'unknown'), { maxLength: 200 }),
      });
      await fc.assert(
        fc.asyncProperty(filters, fc.integer({ min: 1, max: 60 }), async (every, size) => {
          const filter: PageFilter = { apiKey: every.apiKey, organizationId: every.organizationId };
          for (const key of combination) Object.assign(filter, { [key]: every[key] });
          const newestFirst = await readAll(filter, { newestFirst: true, size });
          expect(newestFirst).toEqual(expected(filter));
          expect((await readAll(filter, { newestFirst: false, size })).reverse()).toEqual(newestFirst);
        }),
        { numRuns: 40 },
      );
    },
  );

  it('finds something in every combination', () => {
    const one = all.find(
      ({ apiKey, locationId, content }) => apiKey === 'tenant' && locationId && content.notifyUsers.length > 0,
    );
    const every = {
      documentId: one?.documentId,
      locationId: one?.locationId,
      userId: one?.content.notifyUsers[0]?.userId,
      ids: [one?.id ?? ''],
    };
    for (const combination of COMBINATIONS) {
      const filter: PageFilter = { apiKey: 'tenant', organizationId: one?.organizationId ?? '' };
      for (const key of combination) Object.assign(filter, { [key]: every[key as keyof typeof every] });
      expect(expected(filter)).toContain(one?.id);
    }
  });

  it('ends a page at 4 MiB of content, and reads on after it', async () => {
    const big = (id: string) => {
      const notification = aNotification({ id, organizationId: 'big' });
      notification.content.displayBodyMessage = 'x'.repeat(900_000);
      return notification;
    };
    for (let index = 0; index < 6; index++) await inserts.insert([big(`b${index}`)]);
    const filter = { apiKey: 'tenant', organizationId: 'big', documentId: 'doc' };
    const first = await pages.find(filter, { newestFirst: true, size: 1000 });
    expect(first.more).toBe(true);
    expect(first.notifications.length).toBeGreaterThan(0);
    expect(first.notifications.length).toBeLessThan(6);
    expect(await readAll(filter, { newestFirst: true, size: 1000 })).toHaveLength(6);
  });

  describe('with many notifications of one user, document and location', () => {
    const MANY = 20_000;
    beforeAll(async () => {
      const [organization] = await dataSource.query<{ id: string }[]>(
        `INSERT INTO organizations (api_key, organization_id) VALUES ('tenant', 'many') RETURNING id`,
      );
      await dataSource.query(
        `INSERT INTO notifications (organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content)
         SELECT $1, 'm' || n, n, 'doc', 'loc', n % 10 = 0, 2, '\\x00', '{}' FROM generate_series(1, ${MANY}) n`,
        [organization?.id],
      );
      await dataSource.query(
        `INSERT INTO recipients (organization, user_id, "timestamp", notification_id, document_id, location_id)
         SELECT $1, 'user', n, 'm' || n, 'doc', 'loc' FROM generate_series(1, ${MANY}) n`,
        [organization?.id],
      );
      await dataSource.query(`INSERT INTO members VALUES ($1, 'user', 'organization', '')`, [organization?.id]);
      await dataSource.query('VACUUM (ANALYZE)');
    });

    // A prepared statement is planned for its values at first, and later without knowing them.
    const modes = ['force_custom_plan', 'force_generic_plan'];
    const cases = COMBINATIONS.flatMap((combination) =>
      modes.map((mode) => [combination.join(' + '), mode, combination] as const),
    );
    it.each(cases)('reads little more than a page by %s, from an index: %s', async (_, mode, combination) => {
      const every = { documentId: 'doc', locationId: 'loc', userId: 'user', ids: ['m5', 'm6', 'm10'] };
      const filter: PageFilter = { apiKey: 'tenant', organizationId: 'many' };
      for (const key of combination) Object.assign(filter, { [key]: every[key as keyof typeof every] });
      for (const after of [undefined, { timestamp: MANY / 2, notificationId: `m${MANY / 2}` }])
        await requireLittleRead(pageQuery(filter, { newestFirst: true, size: 50, after }), mode);
    });

    it.each(modes)('reads little more than a page where the planner expects less than a page: %s', async (mode) => {
      // All that is for everybody is at one location: it is expected to be spread like the others.
      await dataSource.query(
        `UPDATE notifications SET notify_all = "timestamp" % 20 = 0,
           document_id = CASE "timestamp" % 5 WHEN 0 THEN 'busy' ELSE 'document' || "timestamp" % 100 END,
           location_id = CASE "timestamp" % 5 WHEN 0 THEN 'busy' ELSE 'location' || "timestamp" % 5 END
         WHERE id LIKE 'm%'`,
      );
      await dataSource.query('VACUUM (ANALYZE)');
      const filter: PageFilter = { apiKey: 'tenant', organizationId: 'many', locationId: 'busy', userId: 'user' };
      await requireLittleRead(pageQuery(filter, { newestFirst: true, size: 50 }), mode);
    });

    async function requireLittleRead(query: ReturnType<typeof pageQuery>, mode: string): Promise<void> {
      const nodes = flatten(await planOf(query, mode));
      const scans = nodes.filter(({ 'Relation Name': relation }) => relation === 'notifications' || relation === 'recipients');
      expect(scans.map((node) => node['Node Type']).filter((type) => type === 'Seq Scan')).toEqual([]);
      // Rows that a scan produced or threw away, over all its loops.
      const touched = scans.map((node) => node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)));
      expect(Math.max(...touched)).toBeLessThanOrEqual(51);
    }

    async function planOf({ text, values }: ReturnType<typeof pageQuery>, mode: string): Promise<PlanNode | undefined> {
      const runner = dataSource.createQueryRunner();
      try {
        await runner.query(`SET plan_cache_mode = ${mode}`);
        await runner.query(`PREPARE page AS ${text}`);
        const literals = values.map((value) => (Array.isArray(value) ? `'{${value.join()}}'` : `'${String(value)}'`));
        const plans = (await runner.query(`EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) EXECUTE page (${literals.join()})`)) as {
          'QUERY PLAN': PlanRoot[];
        }[];
        return plans[0]?.['QUERY PLAN'][0]?.Plan;
      } finally {
        await runner.query('DEALLOCATE ALL');
        await runner.query('RESET plan_cache_mode');
        await runner.release();
      }
    }
  });
});

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Loops': number;
  'Actual Rows': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}
interface PlanRoot {
  Plan: PlanNode;
}

const flatten = (node: PlanNode | undefined): PlanNode[] => (node ? [node, ...(node.Plans ?? []).flatMap(flatten)] : []);
