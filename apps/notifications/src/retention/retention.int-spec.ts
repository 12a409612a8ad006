import type { DataSource } from 'typeorm';
import { eventually } from '@app/testing/eventually';
import { planOf, touchedBy } from '@app/testing/database/plan';
import { InsertNotificationsRepository } from '../db/insert-notifications.repository';
import { DELETE_LOCKED, DELETE_OLD_READINGS, deleteOld, FORGET_FIRST_RUNS, FREE_IDS, LOCK_OLD } from '../db/retention.repository';
import { Retention } from './retention';
import { aNotification, testDatabase } from '../../test/notifications';

const DAY_MS = 24 * 60 * 60 * 1000;

describe(Retention.name, () => {
  const database = testDatabase(2);
  let dataSources: DataSource[];

  beforeAll(() => void ({ dataSources } = database));
  beforeEach(() =>
    dataSources[0].query('TRUNCATE organizations, notifications, recipients, readings, deletions, outbox CASCADE'),
  );

  /** Stores notifications `<name>0` and so on, `daysAgo` days ago. */
  async function store(name: string, count: number, daysAgo: number): Promise<void> {
    const to = ['reader', '__proto__', 'a "quoted" one'];
    const batch = Array.from({ length: count }, (_, n) => aNotification({ id: `${name}${n}`, to }));
    await new InsertNotificationsRepository(dataSources[0]).insert(batch.sort((a, b) => (a.id < b.id ? -1 : 1)));
    for (const [table, id] of [
      ['notifications', 'id'],
      ['recipients', 'notification_id'],
    ]) {
      await dataSources[0].query(`UPDATE ${table} SET "timestamp" = "timestamp" - $1::bigint WHERE ${id} LIKE $2`, [
        daysAgo * DAY_MS,
        `${name}%`,
      ]);
    }
  }

  const left = async () => {
    const [counts] = await dataSources[0].query<{ notifications: string[]; recipients: string[] }[]>(
      `SELECT (SELECT coalesce(array_agg(DISTINCT left(id, 3)), '{}') FROM notifications) AS notifications,
              (SELECT coalesce(array_agg(DISTINCT left(notification_id, 3)), '{}') FROM recipients) AS recipients`,
    );
    return counts;
  };

  it('deletes older notifications with their recipients and nothing else, from several processes', async () => {
    await store('old', 500, 31);
    await store('new', 50, 29);
    const processes = dataSources.map((dataSource) => new Retention(dataSource, 30));
    processes.forEach((one) => one.start());
    await eventually(async () => (await left()).notifications.length === 1);
    await Promise.all(processes.map((one) => one.stop()));
    expect(await left()).toEqual({ notifications: ['new'], recipients: ['new'] });
    const [{ count }] = await dataSources[0].query<{ count: number }[]>('SELECT count(*)::int FROM recipients');
    expect(count).toBe(150);
  });

  it('deletes a notification and its recipients, or neither, while contents are rewritten', async () => {
    const runner = dataSources[0].createQueryRunner();
    await store('old', 1000, 31);
    let isOver = false;
    // As erasures do.
    const rewrite = async () => {
      const ids = Array.from({ length: 5 }, () => `old${Math.floor(Math.random() * 1000)}`);
      await dataSources[1].query('UPDATE notifications SET content = content WHERE id = ANY ($1)', [ids]);
      if (!isOver) await rewrite();
    };
    const rewritten = Promise.all([rewrite(), rewrite()]);
    let halves = 0;
    for (let times = 0; times < 50; times++) {
      await runner.startTransaction();
      await deleteOld(runner.manager, 30, 1000);
      const found = (await runner.query(
        'SELECT FROM notifications n WHERE NOT EXISTS (SELECT FROM recipients r WHERE r.notification_id = n.id)',
      )) as unknown[];
      halves += found.length;
      await runner.rollbackTransaction();
    }
    isOver = true;
    await rewritten;
    await runner.release();
    expect(halves).toBe(0);
  });

  it('deletes the read state of older notifications', async () => {
    await dataSources[0].query(
      `INSERT INTO readings SELECT 1, 'reader', (extract(epoch FROM now()) * 1000)::bigint - days * ${DAY_MS}::bigint, 'n' || days, true, -1
       FROM generate_series(1, 60) days`,
    );
    const retention = new Retention(dataSources[0], 30);
    retention.start();
    const count = async () => (await dataSources[0].query<{ count: number }[]>('SELECT count(*)::int FROM readings'))[0]?.count;
    await eventually(async () => (await count()) === 29);
    await retention.stop();
  });

  it('frees the ids of deleted notifications after 25 hours, and not by their age, also when no age is set', async () => {
    await store('free', 300, 0);
    await store('taken', 3, 0);
    const hour = 60 * 60 * 1000;
    await dataSources[0].query(`DELETE FROM recipients`);
    await dataSources[0].query(
      `UPDATE notifications SET document_id = '', "timestamp" = "timestamp" - CASE WHEN id LIKE 'free%' THEN $1::bigint ELSE $2::bigint END`,
      [25 * hour + 60_000, 24 * hour],
    );
    for (const days of [0, 1]) {
      const retention = new Retention(dataSources[0], days);
      retention.start();
      await eventually(async () => (await left()).notifications.join() === 'tak');
      await retention.stop();
    }
  });

  it('forgets the moments of first runs after 25 hours, also when no such command comes any more', async () => {
    await dataSources[0].query(
      `INSERT INTO deletions SELECT 'tenant', 'delete ' || n, 0, now() - n * interval '1 hour' FROM generate_series(1, 300) n`,
    );
    const retention = new Retention(dataSources[0], 0);
    retention.start();
    const count = async () => (await dataSources[0].query<unknown[]>('SELECT FROM deletions')).length;
    await eventually(async () => (await count()) === 24);
    await retention.stop();
  });

  it('deletes copied memberships that ended 30 days ago and expired keys, also when no age is set', async () => {
    await dataSources[0].query(`INSERT INTO version_times VALUES (current_date - 40, 7)`);
    await dataSources[0].query(`INSERT INTO members VALUES (1, 'a', 'document', 'd', 1, 5), (1, 'b', 'document', 'd', 1, -1)`);
    await dataSources[0].query(`INSERT INTO members VALUES (1, 'c', 'document', 'd', 1, -1)`);
    await dataSources[0].query(`INSERT INTO departures VALUES (1, 'c', 6)`);
    await dataSources[0].query(
      `INSERT INTO idempotency_keys SELECT 'tenant', 'x', hours::text, '\\x00', 'n', now() - hours * interval '1 hour' FROM generate_series(1, 50) hours`,
    );
    const retention = new Retention(dataSources[0], 0);
    retention.start();
    const keys = async () => (await dataSources[0].query<unknown[]>('SELECT FROM idempotency_keys')).length;
    await eventually(async () => (await keys()) === 24);
    await retention.stop();
    expect(await dataSources[0].query('SELECT user_id FROM members')).toEqual([{ user_id: 'b' }]);
    expect(await dataSources[0].query('SELECT FROM departures')).toEqual([]);
  });

  it('looks up rows by index, even with many users and notifications', async () => {
    const nodes = await dataSources[0].transaction(async (manager) => {
      // This tests the plan, not times: filling the tables may take long on a slow machine.
      await manager.query('SET LOCAL statement_timeout = 0');
      await manager.query(
        `INSERT INTO notifications (organization, id, "timestamp", document_id, notify_all, size, fingerprint, content)
         SELECT 0, 'n' || n, n, 'doc', false, 2, '\\x00', json_build_object('notifyUsers', json_build_array(json_build_object('userId', 'u' || n)))
         FROM generate_series(1, 20000) n`,
      );
      await manager.query(
        `INSERT INTO recipients (organization, user_id, "timestamp", notification_id, document_id)
         SELECT 0, 'u' || n, n, 'n' || n, 'doc' FROM generate_series(1, 20000) n`,
      );
      await manager.query('ANALYZE notifications, recipients');
      await manager.query(`PREPARE lock_old AS ${LOCK_OLD}`);
      await manager.query(`PREPARE delete_locked AS ${DELETE_LOCKED}`);
      const values = '86400000, 64';
      const locked = await manager.query<{ ctid: string }[]>(`EXECUTE lock_old (${values})`);
      const ctids = locked.map(({ ctid }) => `"${ctid}"`).join();
      return [
        ...(await planOf(manager, `EXECUTE lock_old (${values})`)),
        ...(await planOf(manager, `EXECUTE delete_locked ('{${ctids}}')`)),
      ];
    });
    const lookups = nodes.filter(
      (node) => node['Relation Name'] === 'recipients' && node['Index Cond'] && node['Actual Loops'] > 0,
    );
    expect(lookups.map((node) => node['Index Cond'])).toEqual([expect.stringContaining('(user_id = (u.')]);
    expect(Math.max(...nodes.map(touchedBy), ...nodes.map((node) => node['Index Searches'] ?? 0))).toBe(64);
  });

  it.each([
    ['read state', 'readings', DELETE_OLD_READINGS, '64, 86400000'],
    ['deleted notifications', 'notifications', FREE_IDS, '64'],
    ['moments of first runs', 'deletions', FORGET_FIRST_RUNS, '64'],
  ])('finds old %s by index', async (_, table, statement, values) => {
    const nodes = await dataSources[0].transaction(async (manager) => {
      await manager.query('SET LOCAL statement_timeout = 0');
      await manager.query(
        `INSERT INTO notifications (organization, id, "timestamp", document_id, notify_all, size, fingerprint, content)
         SELECT 0, 'n' || n, n, '', false, 2, '\\x00', '{}' FROM generate_series(1, 20000) n`,
      );
      await manager.query(`INSERT INTO readings SELECT 1, 'u' || n, n, 'n' || n, true, -1 FROM generate_series(1, 20000) n`);
      await manager.query(
        `INSERT INTO deletions SELECT 'one', 'm' || n, 0, now() - n * interval '1 hour' FROM generate_series(1, 20000) n`,
      );
      await manager.query(`ANALYZE ${table}`);
      await manager.query(`PREPARE old_${table} AS ${statement}`);
      return planOf(manager, `EXECUTE old_${table} (${values})`);
    });
    const scans = nodes.filter((node) => node['Relation Name'] === table && node['Node Type'].includes('Scan'));
    expect(scans.length).toBeGreaterThan(0);
    expect(Math.max(...scans.map(touchedBy))).toBe(64);
  });

  it('keeps everything when no age is set', async () => {
    await store('old', 3, 10_000);
    const retention = new Retention(dataSources[0], 0);
    retention.start();
    await (retention as unknown as { running: Promise<void> }).running;
    await retention.stop();
    expect(await left()).toEqual({ notifications: ['old'], recipients: ['old'] });
  });
});
