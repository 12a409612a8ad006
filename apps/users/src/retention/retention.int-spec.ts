import type { DataSource, EntityManager } from 'typeorm';
import { deleteBy } from '@app/postgres/retention/deletion-loop';
import { DELETE_EXPIRED_KEYS } from '@app/postgres/retention/expired-keys';
import { keysDeleted, membershipsDeleted } from '@app/postgres/metrics';
import { eventually } from '@app/testing/eventually';
import { planOf, touchedBy } from '@app/testing/database/plan';
import { numbered, users, usersOnDatabase } from '../../test/users';
import { deleteLeft, deleteRemoved, recordVersion } from '../db/ended-members.repository';
import { MEMBER_TABLES } from '../db/level';
import { Retention } from './retention';

const on = usersOnDatabase();
let dataSource: DataSource;

beforeAll(() => void ({ dataSource } = on));

const LOCK = 'pg_advisory_xact_lock(7)';
const MOST = 64;
/** More days than a version is kept. */
const FAR = 100_000;

/** Lets days pass for the versions that are kept. */
async function pass(days: number): Promise<void> {
  await recordVersion(dataSource);
  // Two steps: a row must not meet that of the day before.
  await dataSource.query('UPDATE version_times SET day = day - $1::int', [FAR]);
  await dataSource.query('UPDATE version_times SET day = day + $1::int', [FAR - days]);
}

async function deleteDue(most = MOST): Promise<void> {
  await recordVersion(dataSource);
  for (const table of MEMBER_TABLES) while ((await deleteBy(dataSource, deleteRemoved(table, most))).more);
  while ((await deleteBy(dataSource, deleteLeft(most))).more);
}

const left = async () => [
  ...(await on.values(`SELECT user_id FROM organization_members`)),
  ...(await on.folderMembers()),
  ...(await on.documentMembers()),
];
const add = (...userIds: string[]) => on.add({ organizationId: 'o', documentId: 'd', users: users(...userIds) });
const remove = (...userIds: string[]) => on.delete({ organizationId: 'o', documentId: 'd', userIds });
const leave = (...userIds: string[]) => on.delete({ organizationId: 'o', userIds });
/** A document membership that must be deleted, and one that must not. */
const endedAndLive = async () => {
  await add('a', 'live');
  await remove('a');
  await pass(31);
};

describe('memberships that have ended', () => {
  it('are deleted after 30 days, at every level, and nothing else is', async () => {
    for (const level of [{}, { folderId: 'f' }, { documentId: 'd' }]) {
      await on.add({ organizationId: 'o', ...level, users: users('removed', 'left', 'back', 'stays') });
      if ('folderId' in level || 'documentId' in level) await on.delete({ organizationId: 'o', ...level, userIds: ['removed'] });
    }
    await leave('left', 'back');
    await add('back');
    await pass(30);
    await remove('stays');
    const before = await left();
    await deleteDue();
    expect(await left()).toEqual(before);
    await pass(1);
    await deleteDue();
    expect((await left()).sort()).toEqual(['d/back', 'd/stays', 'f/stays', 'removed', 'stays']);
    const [{ memberships }] = [await on.listMemberships('back', 'o')];
    expect(memberships.map(({ level, id }) => `${level} ${id}`)).toEqual(['document d']);
    await pass(31);
    await deleteDue();
    expect((await left()).sort()).toEqual(['d/back', 'f/stays', 'removed', 'stays']);
  });

  it('of many who left are deleted by several processes at once, with equal versions too, and each departure is looked at once', async () => {
    for (const place of [{ documentId: 'd' }, { folderId: 'f' }, {}])
      await on.add({ organizationId: 'o', ...place, users: numbered(100) });
    await leave(...numbered(80).map(({ userId }) => userId));
    await dataSource.query(`UPDATE users SET left_version = (SELECT max(left_version) FROM users) WHERE user_id ~ '^u[1-5]'`);
    await pass(31);
    await Promise.all([deleteDue(7), deleteDue(7), deleteDue(7)]);
    await deleteDue(7);
    expect(await left()).toHaveLength(60);
    expect(await on.values('SELECT day::text FROM version_times')).toHaveLength(1);
    // The next day begins behind it.
    await pass(31);
    const plan = await planOf(dataSource.manager, deleteLeft(MOST));
    expect(Math.max(...plan.filter((node) => node['Relation Name'] === 'users').map(touchedBy))).toBe(0);
  });

  it('of one user who left are deleted in several steps', async () => {
    for (let n = 0; n < 20; n++) await on.add({ organizationId: 'o', documentId: `d${n}`, users: users('a') });
    await leave('a');
    await pass(31);
    await deleteDue(7);
    expect(await on.documentMembers()).toEqual([]);
  });

  it('are counted from one version of each day', async () => {
    await Promise.all(Array.from({ length: 10 }, () => recordVersion(dataSource)));
    const recorded = await on.values('SELECT version FROM version_times');
    expect(recorded).toHaveLength(1);
    await recordVersion(dataSource);
    expect(await on.values('SELECT version FROM version_times')).toEqual(recorded);
  });

  it('can begin again afterwards', async () => {
    await endedAndLive();
    await deleteDue();
    expect(await on.documentMembers()).toEqual(['d/live']);
    const { data } = await add('a');
    expect(data).toMatchObject({ a: { message: 'User added.' } });
    await deleteDue();
    expect(await on.documentMembers()).toEqual(['d/a', 'd/live']);
  });

  it('stay while another statement holds their user, and longer when it lets them begin again', async () => {
    await add('left');
    await leave('left');
    await endedAndLive();
    const again = `SELECT FROM users FOR UPDATE; UPDATE document_members SET added = nextval('versions') WHERE user_id = 'a'`;
    await on.holding(again, async (rival) => {
      await deleteDue();
      expect(await on.documentMembers()).toEqual(['d/a', 'd/left', 'd/live']);
      await rival.query('COMMIT');
    });
    await deleteDue();
    expect(await on.documentMembers()).toEqual(['d/a', 'd/live']);
  });

  it.each([
    ['removed', () => remove('a'), deleteRemoved('document_members', MOST), 'FROM found) f', `FROM found, ${LOCK}) f`],
    ['left', () => leave('a'), deleteLeft(MOST), 'FROM found f CROSS', `FROM (SELECT found.* FROM found, ${LOCK}) f CROSS`],
  ])('stay when they begin again between the look and the lock: %s', async (ended, end, statement, looked, waiting) => {
    await add('a');
    await end();
    await pass(31);
    await on.holding(`SELECT ${LOCK}`, async (rival) => {
      const deletion = dataSource.query<[{ deleted: number }]>(statement.replace(looked, waiting));
      await rival.waiting(1);
      await add('a');
      // Removed again, just now.
      if (ended === 'removed') await remove('a');
      await rival.query('COMMIT');
      expect((await deletion)[0].deleted).toBe(0);
    });
    expect(await on.documentMembers()).toEqual(['d/a']);
  });

  it('are deleted for a user who is being erased too', async () => {
    await add('a', 'b');
    await remove('a');
    await on.erase({ userIds: ['a'] });
    await pass(31);
    await Promise.all([deleteDue(), on.erased()]);
    expect(await on.documentMembers()).toEqual(['d/b']);
    expect(await on.values('SELECT user_id FROM users')).toEqual(['b']);
  });
});

describe('retention', () => {
  const counted = async () =>
    (await Promise.all([membershipsDeleted.get(), keysDeleted.get()])).map(({ values }) => values[0].value);

  it('deletes ended memberships and expired keys, counts them, and keeps a version of the day', async () => {
    await endedAndLive();
    const keyed = (idempotencyKey: string) => on.add({ organizationId: 'o', users: users('b') }, { idempotencyKey });
    await keyed('expired');
    await keyed('kept');
    await dataSource.query(`UPDATE idempotency_keys SET created_at = now() - interval '25 hours 1 minute' WHERE key <> 'kept'`);
    const expired = (await on.values('SELECT key FROM idempotency_keys')).length - 1;
    const before = await counted();
    const retention = new Retention(dataSource);
    retention.start();
    await eventually(async () => (await on.values(`SELECT key FROM idempotency_keys`)).join() === 'kept');
    await retention.stop();
    expect(await on.documentMembers()).toEqual(['d/live']);
    expect((await counted()).map((count, at) => count - before[at])).toEqual([1, expired]);
    expect(await on.values(`SELECT day::text FROM version_times WHERE day = (now() AT TIME ZONE 'UTC')::date`)).toHaveLength(1);
  });
});

describe('among many others', () => {
  const fill = async (manager: EntityManager) => {
    await manager.query('SET LOCAL statement_timeout = 0');
    const [{ id }] = await manager.query<[{ id: string }]>(
      `INSERT INTO organizations (api_key, organization_id) VALUES ('one', 'many') RETURNING id`,
    );
    const many = 'FROM generate_series(1, 10000) n';
    await manager.query(`INSERT INTO documents VALUES (${id}, 'ended'), (${id}, 'live')`);
    await manager.query(
      `INSERT INTO users (organization, user_id, initial_generated, left_version) SELECT ${id}, 'u' || n, true, n - 5000 ${many}`,
    );
    for (const values of [`'ended', 'u' || n, 1, n - 5000`, `'live', 'u' || n, n + 5000, -1`])
      await manager.query(
        `INSERT INTO document_members (organization, document_id, user_id, added, removed) SELECT ${id}, ${values} ${many}`,
      );
    await manager.query(
      `INSERT INTO idempotency_keys SELECT 'one', 'x', n::text, '\\x00', '{}', now() - n * interval '1 minute' ${many}`,
    );
    await manager.query(`INSERT INTO version_times VALUES (current_date - 40, 4000, 100)`);
    await manager.query('ANALYZE users, document_members, version_times, idempotency_keys, organizations');
  };

  it.each([
    ['removed memberships', deleteRemoved('document_members', MOST)],
    ['memberships of users who left', deleteLeft(MOST)],
    ['expired keys', DELETE_EXPIRED_KEYS.replaceAll('$1', String(MOST))],
  ])('%s are found by index', async (_, statement) => {
    const nodes = await dataSource.transaction(async (manager) => {
      await fill(manager);
      return planOf(manager, statement);
    });
    const scans = nodes.filter((node) => node['Relation Name'] && node['Node Type'].includes('Scan'));
    // A user has two memberships.
    expect(scans.filter((node) => touchedBy(node) > 2 * MOST)).toEqual([]);
    expect(Math.max(...scans.map(touchedBy))).toBeGreaterThanOrEqual(MOST);
  });
});
