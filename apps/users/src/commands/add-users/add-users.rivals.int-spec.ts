import { isDatabaseAway } from '@app/postgres/errors';
import { eventually } from '@app/testing/eventually';
import { messages, numbered, refusal, statementsOf, users, usersOnDatabase } from '../../../test/users';

const on = usersOnDatabase();

const add: typeof on.add = (...call) => on.add(...call);

const USER_A = `UPDATE users SET email = 'held' WHERE user_id = 'a'`;

describe('users/add: concurrency', () => {
  it('creates an organization once for 50 calls at the same time', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => add({ organizationId: 'o', documentId: 'd', users: users(`u${index}`) })),
    );
    expect(answers.flatMap((answer) => Object.values(messages(answer)))).toEqual(Array(50).fill('User added.'));
    expect(await on.values('SELECT organization_id FROM organizations')).toEqual(['o']);
    expect(await on.documentMembers()).toHaveLength(50);
  });

  it('finds an organization that another transaction is creating', async () => {
    await on.holding(`INSERT INTO organizations (api_key, organization_id) VALUES ('one', 'o')`, async (rival) => {
      const answers = Promise.all(users('a', 'b', 'c').map((user) => add({ organizationId: 'o', users: [user] })));
      await rival.waiting(1);
      await rival.query('COMMIT');
      expect((await answers).map(({ message }) => message)).toEqual(Array(3).fill('User(s) processed successfully.'));
    });
    expect(await on.organizationMembers()).toEqual(['one/o/a', 'one/o/b', 'one/o/c']);
  });

  it('creates the organization when the other transaction rolls back', async () => {
    await on.holding(`INSERT INTO organizations (api_key, organization_id) VALUES ('one', 'o')`, async (rival) => {
      const answer = add({ organizationId: 'o', users: users('a') });
      await rival.waiting(1);
      await rival.query('ROLLBACK');
      expect(messages(await answer)).toEqual({ a: 'User added.' });
    });
  });

  it('answers "added" to only one of many calls that add the same user', async () => {
    await add({ organizationId: 'o', users: users('other') });
    const answers = await Promise.all(Array.from({ length: 20 }, () => add({ organizationId: 'o', users: users('a') })));
    expect(answers.filter((answer) => messages(answer)['a'] === 'User added.')).toHaveLength(1);
  });

  it('never deadlocks when calls name the same users in opposite orders', async () => {
    const forwards = numbered(300);
    const backwards = forwards.toReversed();
    await add({ organizationId: 'o', users: forwards });
    const call = (index: number) => {
      const given = (index % 2 ? forwards : backwards).map(({ userId }) => ({ userId, name: `${index}` }));
      return add({ organizationId: 'o', ...(index % 3 > 0 && { documentId: 'd' }), users: given });
    };
    // A deadlock would show as an extra statement: the retry of the call that lost.
    const statements = await statementsOf(() => Promise.all(Array.from({ length: 16 }, (_, index) => call(index))));
    expect(statements).toBe(16);
    expect(await on.documentMembers()).toHaveLength(300);
  });
});

// A number that was drawn before the wait would be smaller than those of the other transaction: an answer would tell of a change without effect.
describe('memberships: the later holder of the row of a user has the greater version', () => {
  const LEVEL = { organizationId: 'o', documentId: 'd' };
  const LOCK = 'SELECT FROM users FOR UPDATE';
  const REMOVED = `UPDATE document_members SET removed = nextval('versions')`;
  const ADDED = `UPDATE document_members SET added = nextval('versions')`;
  const members = async () => (await on.getUsers(LEVEL)).data.map(({ userId }) => userId);

  it('adds a user who is removed while the call waits', async () => {
    await add({ ...LEVEL, users: users('a') });
    await on.holding(LOCK, async (rival) => {
      const call = add({ ...LEVEL, users: users('a') });
      await rival.waiting(1);
      await rival.query(`${REMOVED}; COMMIT`);
      expect(messages(await call)).toEqual({ a: 'User added.' });
    });
    expect(await members()).toEqual(['a']);
  });

  it('removes a user who is removed and added again while the call waits', async () => {
    await add({ ...LEVEL, users: users('a') });
    await on.holding(LOCK, async (rival) => {
      const call = on.delete({ ...LEVEL, userIds: ['a'] });
      await rival.waiting(1);
      await rival.query(`${REMOVED}; ${ADDED}; COMMIT`);
      expect((await call).data).toMatchObject({ a: { message: 'User removed.' } });
    });
    expect(await members()).toEqual([]);
  });
});

describe('users/add: another transaction with another lock order', () => {
  it('is retried when it is the victim of a deadlock', async () => {
    await add({ organizationId: 'o', users: users('a', 'b') });
    // The transaction that checks for a deadlock first is the victim.
    const patient = `SET LOCAL deadlock_timeout = '10s'; UPDATE users SET email = 'held' WHERE user_id = 'b'`;
    await on.holding(patient, async (rival) => {
      const call = add({ organizationId: 'o', users: ['a', 'b'].map((userId) => ({ userId, name: 'New' })) });
      await rival.waiting(1);
      await rival.query(USER_A);
      await rival.query('COMMIT');
      expect(messages(await call)).toEqual({ a: 'User updated.', b: 'User updated.' });
    });
    expect(await on.user('b')).toMatchObject({ name: 'New', email: 'held' });
  });
});

describe('users/add: in time or not at all', () => {
  it('does nothing after its deadline', async () => {
    const error = await refusal(add({ organizationId: 'o', users: users('a') }, { deadline: Date.now() - 1 }));
    expect(error).toMatchObject({ status: 'UNAVAILABLE' });
    expect(await on.values('SELECT organization_id FROM organizations')).toEqual([]);
  });

  it('does nothing when the statement reaches the database too late', async () => {
    const late = on.members.add({
      apiKey: 'one',
      organizationId: 'o',
      level: { of: 'organization' },
      users: [],
      deadline: Date.now() - 500,
    });
    expect(await late).toEqual({ outcome: 'missed' });
    expect(await on.values('SELECT organization_id FROM organizations')).toEqual([]);
  });

  it('cancels a statement that would end late, and resets the connection', async () => {
    await add({ organizationId: 'o', users: users('a') });
    await on.holding(USER_A, async () => {
      // Without a deadline a statement may wait for 2 s. A busy machine delays some of them.
      await eventually(async () => {
        const deadline = Date.now() + 300;
        const error = await refusal(add({ organizationId: 'o', users: [{ userId: 'a', name: 'Late' }] }, { deadline }));
        expect(error).toMatchObject({ status: 'UNAVAILABLE' });
        return Date.now() < deadline + 1600;
      }, 10_000);
    });
    expect(await on.user('a')).toMatchObject({ name: null });
    const timeouts = await Promise.all(Array.from({ length: 20 }, () => on.values('SHOW statement_timeout')));
    expect(new Set(timeouts.flat())).toEqual(new Set(['2s']));
  });

  it('stores the users when little time is left', async () => {
    const given = { organizationId: 'o', documentId: 'd', users: numbered(10) };
    // Again when a busy machine begins too late.
    const answer = await eventually(() => add(given, { deadline: Date.now() + 1900 }), 10_000);
    expect(answer.message).toBe('User(s) processed successfully.');
  });

  it.each([
    ['a call without a deadline', () => undefined],
    ['a call in a hurry', () => Date.now() + 1000],
  ])('lets the loss of the connection of %s through, because the outcome is unknown', async (_, deadline) => {
    await add({ organizationId: 'o', users: users('a') });
    // The statement of a call in a hurry may end by itself, on a busy machine: after 0.4 s.
    await eventually(async () => {
      let error: unknown;
      await on.holding(USER_A, async (rival) => {
        const lost = refusal(add({ organizationId: 'o', users: [{ userId: 'a', name: 'Lost' }] }, { deadline: deadline() }));
        const [pid] = await Promise.race([rival.waiting(1), lost.then(() => [])]);
        if (pid) await rival.query('SELECT pg_terminate_backend($1)', [pid]);
        error = await lost;
      });
      return isDatabaseAway(error);
    });
    // A redelivery stores it, at the latest after the pool has noticed the loss too.
    while (isDatabaseAway(await refusal(add({ organizationId: 'o', users: [{ userId: 'a', name: 'Lost' }] }))));
    expect(await on.user('a')).toMatchObject({ name: 'Lost' });
  });
});
