import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { EntityManager } from 'typeorm';
import { eventually } from '@app/testing/eventually';
import { requiredEnv } from '@app/testing/required-env';
import type { EraseUsersRequest } from '@app/contracts/users.erase';
import { numbered, users, usersOnDatabase, type Call } from '../../test/users';
import { UsersErasureSteps } from './erasure-steps';

const on = usersOnDatabase();

const erase = (request: Partial<EraseUsersRequest> = {}, call?: Call) => on.erase({ userIds: ['amy'], ...request }, call);

it('erases more memberships than one step deletes', async () => {
  await on.add({ organizationId: 'org', users: users('amy') });
  await on.dataSource.transaction(async (manager) => {
    await manager.query('SET LOCAL statement_timeout = 0');
    await manager.query(`
      WITH known AS (INSERT INTO documents (organization, document_id) SELECT organization, 'd' || n FROM users, generate_series(1, 6000) n RETURNING *)
      INSERT INTO document_members (organization, document_id, user_id) SELECT organization, document_id, 'amy' FROM known`);
  });
  await erase();
  const steps = new UsersErasureSteps(on.dataSource, () => undefined);
  // It waits while the relay looks at its table.
  await eventually(async () => (await steps.step()) === 'done');
  expect(await on.documentMembers()).toHaveLength(1000);
  await on.erased();
  expect([await on.documentMembers(), await on.user('amy')]).toEqual([[], undefined]);
});

it.each([
  ['transaction', 'SELECT'],
  ['transaction that is not shown', 'SET track_activities = off'],
])('does not complete while an older %s runs, or an older event waits', async (_, older) => {
  await on.add({ organizationId: 'org', users: users('amy') });
  await on.published();
  const steps = new UsersErasureSteps(on.dataSource, () => undefined);
  const outcomes = async () => [await steps.step(), await steps.step(), await steps.step(), await steps.step()];
  await on.holding(older, async () => {
    await erase();
    expect(await outcomes()).toEqual(['waiting', 'waiting', 'waiting', 'waiting']);
  });
  await on.dataSource.query(`INSERT INTO outbox (type, api_key, organization_id, data) VALUES ('later.v1', 'one', 'org', '{}')`);
  expect(await outcomes()).toEqual(['done', 'done', 'done', 'waiting']);
  await on.dataSource.query('TRUNCATE outbox');
  expect(await outcomes()).toEqual(['done', 'idle', 'idle', 'idle']);
});

it('waits while another account writes events, but not while it reads, or for another database', async () => {
  await on.add({ organizationId: 'org', users: users('amy') });
  await on.published();
  const steps = new UsersErasureSteps(on.dataSource, () => undefined);
  const outcomes = async () => [await steps.step(), await steps.step(), await steps.step(), await steps.step()];
  const account = `other_${randomBytes(6).toString('hex')}`;
  const elsewhere = new Client({ connectionString: requiredEnv('TEST_DATABASE_URL') });
  await elsewhere.connect();
  await elsewhere.query('BEGIN');
  await on.dataSource.query(`CREATE ROLE ${account} SUPERUSER LOGIN`);
  try {
    const event = `INSERT INTO outbox (type, api_key, organization_id, data) VALUES ('user.added.v1', 'one', 'org', '{}')`;
    await on.holding(
      event,
      async () => {
        await erase();
        expect(await outcomes()).toEqual(['waiting', 'waiting', 'waiting', 'waiting']);
      },
      account,
    );
    await on.holding('SELECT', async () => expect(await outcomes()).toEqual(['done', 'done', 'done', 'done']), account);
  } finally {
    await elsewhere.end();
    await on.dataSource.query(`DROP ROLE ${account}`);
  }
});

it('does not complete while a transaction runs that has begun before the call was committed', async () => {
  await on.add({ organizationId: 'org', users: users('amy') });
  await on.published();
  const kept = `INSERT INTO idempotency_keys (api_key, operation, key, fingerprint, answer) VALUES ('one', 'users.erase', 'k', '', '{}')`;
  const steps = new UsersErasureSteps(on.dataSource, () => undefined);
  const outcomes = async () => [await steps.step(), await steps.step(), await steps.step(), await steps.step()];
  await on.holding(kept, async (rival) => {
    const call = erase({}, { idempotencyKey: 'k' });
    // The call has its time, and is not committed.
    await rival.waiting(1);
    await on.holding('SELECT', async () => {
      await rival.query('ROLLBACK');
      await call;
      expect(await outcomes()).toEqual(['done', 'done', 'waiting', 'waiting']);
    });
  });
  expect(await outcomes()).toEqual(['done', 'done', 'idle', 'idle']);
});

it('goes on with fewer users after a step that took too long', async () => {
  await on.add({ organizationId: 'org', users: numbered(40) });
  await on.dataSource.query(`
    CREATE FUNCTION refuse_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF (SELECT count(*) FROM gone) > 10 THEN RAISE query_canceled; END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER slow AFTER DELETE ON organization_members REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION refuse_many()`);
  try {
    await erase({ userIds: numbered(40).map(({ userId }) => userId) });
    const steps = new UsersErasureSteps(on.dataSource, () => undefined);
    const left = () => on.values('SELECT user_id FROM users');
    for (let step = 0; step < 100 && (await left()).length > 0; step++) await steps.step().catch(() => undefined);
    expect(await left()).toEqual([]);
  } finally {
    await on.dataSource.query('DROP FUNCTION refuse_many CASCADE');
  }
});

it('takes as many users in a step when only the search for them is slow', async () => {
  const everyone = numbered(100);
  for (const organizationId of ['o1', 'o2', 'o3']) await on.add({ organizationId, users: everyone });
  await on.published();
  await erase({ userIds: everyone.map(({ userId }) => userId) });
  const { query } = EntityManager.prototype;
  let now = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  jest.spyOn(EntityManager.prototype, 'query').mockImplementation(function (this: EntityManager, sql, parameters) {
    if (sql.includes('looked_to')) now += 300;
    return query.call(this, sql, parameters);
  });
  try {
    const steps = new UsersErasureSteps(on.dataSource, () => undefined);
    let taken = 0;
    // It waits while the relay looks at its table.
    await eventually(async () => {
      if ((await steps.step()) === 'done') taken++;
      return (await on.values('SELECT user_id FROM users')).length === 0;
    });
    expect(taken).toBe(3);
  } finally {
    jest.restoreAllMocks();
  }
});

it('lets the erasures of API keys take turns', async () => {
  for (let n = 0; n < 100; n++) await erase({ userIds: [`busy-${n}`] });
  await erase({}, { apiKey: 'two' });
  const steps = new UsersErasureSteps(on.dataSource, () => undefined);
  const completed: string[] = [];
  for (let step = 0; step < 50 && !completed.includes('two'); step++) {
    await steps.step();
    completed.push(...(await on.values('WITH taken AS (DELETE FROM outbox RETURNING api_key) SELECT * FROM taken')));
  }
  expect(completed).toContain('two');
  expect(completed.filter((key) => key === 'one').length).toBeLessThan(3);
});

it('does not let an erasure that waits for events hold up one that does not', async () => {
  await erase();
  await erase({}, { apiKey: 'two' });
  // Its calls have woken the relay, whose looks at its table are older transactions.
  await on.published();
  const steps = new UsersErasureSteps(on.dataSource, () => undefined);
  for (let step = 0; step < 4; step++) await steps.step();
  await on.dataSource.query(`UPDATE erasures SET outbox_seq = outbox_seq + 1000 WHERE api_key = 'one'`);
  await on.dataSource.query(`INSERT INTO outbox (type, api_key, organization_id, data) VALUES ('later.v1', 'one', 'org', '{}')`);
  expect(await steps.step()).toBe('done');
  expect(await on.values('SELECT api_key FROM erasures')).toEqual(['one']);
  expect(await steps.step()).toBe('waiting');
});
