import type { DataSource, EntityManager } from 'typeorm';
import { planOf, touchedBy } from '@app/testing/database/plan';
import { DistrustRepository, WALKS } from './distrust.repository';
import { DELETE_LEFT, DELETE_REMOVED, RECORD, recordVersion } from './ended-members.repository';
import { MembersRepository, type CopiedMembership } from './members.repository';
import { DAY_MS, daysPass, deleteDue } from '../../test/days';
import { testDatabase } from '../../test/notifications';

const TENANT = ['tenant', 'org'] as const;
const DOCUMENT: CopiedMembership = { level: 'document', id: 'd' };

const database = testDatabase(3);
let dataSource: DataSource;
let other: DataSource;
let members: MembersRepository;

beforeAll(async () => {
  [dataSource, other] = database.dataSources as [DataSource, DataSource];
  members = new MembersRepository(dataSource);
});
beforeEach(() => dataSource.query('TRUNCATE members, departures, complete_members, version_times'));

const add = (userId: string, version: number, daysAgo = 0) =>
  members.add(...TENANT, DOCUMENT, [{ userId, version }], Date.now() - daysAgo * DAY_MS);
const remove = (userId: string, version: number) => members.remove(...TENANT, DOCUMENT, [{ userId, version }]);
const leave = (userId: string, version: number) => members.leave(...TENANT, [{ userId, version }]);
const rows = async (table: string) =>
  (await dataSource.query<{ user: string }[]>(`SELECT user_id AS user FROM ${table} ORDER BY 1`)).map(({ user }) => user);
const isComplete = async (userId: string) => (await members.find(...TENANT, userId)).complete;

describe('copied memberships that have ended', () => {
  it('are deleted after 30 days with their departures, by several processes at once, and nothing else is', async () => {
    const users = Array.from({ length: 200 }, (_, n) => `u${n}`);
    await members.add(
      ...TENANT,
      DOCUMENT,
      users.map((userId, n) => ({ userId, version: n })),
    );
    for (const [n, userId] of users.slice(0, 150).entries()) await (n % 2 ? remove : leave)(userId, 300 + n);
    await add('u0', 500);
    await daysPass(dataSource, 30);
    expect(await rows('members')).toHaveLength(200);
    await dataSource.query('UPDATE version_times SET day = day - 1');
    await remove('u198', 600);
    await leave('u199', 601);
    await Promise.all(database.dataSources.map((process) => deleteDue(process, 7)));
    expect(await rows('members')).toEqual(['u0', ...users.slice(150)].sort());
    expect(await rows('departures')).toEqual(['u199']);
  });

  it('are counted from one version of each day, kept once, and at most for a month', async () => {
    await remove('a', 5);
    for (let day = 0; day < 40; day++) {
      await Promise.all(database.dataSources.map(recordVersion));
      const [{ count }] = await dataSource.query<[{ count: number }]>('SELECT count(*)::int FROM version_times');
      expect(count).toBe(Math.min(day + 1, 32));
      await daysPass(dataSource, 1);
      await remove('a', 5 + day);
    }
  });

  it('do not begin again by an old addition: it changes nothing, and the next read asks', async () => {
    await members.complete(...TENANT, 'a', { memberships: [], wrong: [] });
    await remove('a', 5);
    await daysPass(dataSource, 31);
    expect(await rows('members')).toEqual([]);
    expect(await isComplete('a')).toBe(true);
    await add('a', 4, 31);
    expect([await rows('members'), await isComplete('a')]).toEqual([[], false]);
    await members.complete(...TENANT, 'a', { memberships: [], wrong: [] });
    await add('a', 6, 5);
    expect([await rows('members'), await isComplete('a')]).toEqual([['a'], true]);
  });

  /** Runs the deletion while a transaction has done something, and again after its end. */
  const beside = async (statement: string, end: 'COMMIT' | 'ROLLBACK', meanwhile: () => Promise<void>) => {
    const runner = other.createQueryRunner();
    try {
      await runner.query(`BEGIN; ${statement}`);
      await deleteDue(dataSource);
      await meanwhile();
      await runner.query(end);
    } finally {
      await runner.release();
    }
    await deleteDue(dataSource);
  };

  it('stay when they begin again at that moment', async () => {
    await add('a', 1);
    await add('b', 2);
    await remove('a', 3);
    await leave('b', 4);
    await dataSource.query(`INSERT INTO version_times SELECT current_date - 40, 4`);
    await beside('UPDATE members SET added = 10', 'COMMIT', async () => expect(await rows('members')).toEqual(['a', 'b']));
    expect([await rows('members'), await rows('departures')]).toEqual([['a', 'b'], []]);
  });

  it('keep their departure until they are deleted, and a later removal is kept', async () => {
    await add('a', 1);
    await add('b', 1);
    await leave('a', 2);
    await leave('b', 2);
    await remove('b', 3);
    await remove('c', 3);
    await leave('c', 2);
    await dataSource.query(`INSERT INTO version_times SELECT current_date - 40, 2`);
    const live = `SELECT FROM members WHERE user_id = 'a' FOR UPDATE`;
    await beside(live, 'ROLLBACK', async () => {
      expect([await rows('members'), await rows('departures')]).toEqual([['a', 'b', 'c'], ['a']]);
    });
    expect([await rows('members'), await rows('departures')]).toEqual([['b', 'c'], []]);
  });

  it('are counted anew when the copy is no longer trusted', async () => {
    await remove('a', 500);
    await daysPass(dataSource, 20);
    await new DistrustRepository(dataSource).forgetTimes();
    await remove('b', 5);
    await daysPass(dataSource, 20);
    expect(await rows('members')).toEqual(['a', 'b']);
    await daysPass(dataSource, 20);
    expect(await rows('members')).toEqual([]);
  });

  it('are counted row by row while the copy is marked as not trusted', async () => {
    for (const user of ['a', 'b', 'c']) await add(user, 1);
    const counts: number[] = [];
    await new DistrustRepository(dataSource).walk(WALKS.members, 2, (count) => counts.push(count));
    expect(counts).toEqual([2, 3]);
  });

  describe('among many others', () => {
    const plan = async (statement: string, values: string) => {
      const runner = dataSource.createQueryRunner();
      await runner.startTransaction();
      try {
        const { manager } = runner;
        await fill(manager);
        await manager.query(`PREPARE ended AS ${statement}`);
        return await planOf(manager, `EXECUTE ended ${values}`);
      } finally {
        await runner.query('ROLLBACK; DEALLOCATE ALL');
        await runner.release();
      }
    };
    const fill = async (manager: EntityManager) => {
      await manager.query('SET LOCAL statement_timeout = 0');
      const many = 'FROM generate_series(1, 20000) n';
      await manager.query(`INSERT INTO members SELECT 1, 'live' || n % 10, 'document', 'd' || n, n ${many}`);
      await manager.query(`INSERT INTO members SELECT 1, 'removed' || n % 10, 'document', 'd' || n, 1, n ${many}`);
      await manager.query(`INSERT INTO members SELECT 1, 'left' || n, 'document', 'd', 1 ${many}`);
      await manager.query(`INSERT INTO departures SELECT 1, 'left' || n, n ${many}`);
      await manager.query(`INSERT INTO version_times SELECT current_date - 31 - n, 10000 - n FROM generate_series(0, 3) n`);
      await manager.query('ANALYZE members, departures, version_times');
    };

    it.each([
      ['the version of the day', RECORD, '', 5],
      ['removed ones', DELETE_REMOVED, '(64)', 64],
      ['those of users who left', DELETE_LEFT, '(64)', 64],
    ])('are found by index: %s', async (_, statement, values, most) => {
      const nodes = await plan(statement, values);
      const scans = nodes.filter((node) => node['Relation Name'] && node['Node Type'].includes('Scan'));
      expect(scans.length).toBeGreaterThan(0);
      expect(scans.filter((node) => touchedBy(node) > most)).toEqual([]);
    });
  });
});
