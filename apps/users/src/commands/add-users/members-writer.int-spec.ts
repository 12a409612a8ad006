import { eventually } from '@app/testing/eventually';
import { messages, refusal, statementsOf, users, usersOnDatabase } from '../../../test/users';
import { MembersWriter } from './members-writer';

const on = usersOnDatabase();

beforeEach(() => add({ organizationId: 'o', users: users('a') }));

const add: typeof on.add = (...call) => on.add(...call);

const HELD = `UPDATE users SET email = 'held' WHERE user_id = 'a'`;
const addEach = (...userIds: string[]) => userIds.map((userId) => add({ organizationId: 'o', users: [{ userId, name: 'New' }] }));
const eventsOf = async () => {
  await on.published();
  return on.events.splice(0).map(({ data }) => JSON.parse(data) as { documentId?: string; users?: { userId: string }[] });
};

describe('users/add: calls at the same time share a statement', () => {
  it('with the answers, rows and events that they have one after the other', async () => {
    await eventsOf();
    const ids = Array.from({ length: 50 }, (_, index) => `u${index}`);
    let answers: Awaited<ReturnType<typeof add>>[] = [];
    const statements = await statementsOf(async () => {
      answers = await Promise.all(addEach(...ids, 'a'));
    });
    expect(statements).toBe(1);
    expect(answers.flatMap((answer) => Object.entries(messages(answer)))).toEqual([
      ...ids.map((userId) => [userId, 'User added.']),
      ['a', 'User updated.'],
    ]);
    expect(await on.organizationMembers()).toHaveLength(51);
    const events = await eventsOf();
    expect(events.map(({ users: added = [] }) => added.map(({ userId }) => userId).sort())).toEqual([['a', ...ids].sort()]);
  });

  it('also when they name the same user: one has added it, and each value is kept', async () => {
    const fields = [{ name: 'Bea' }, { email: 'bea@example.com' }, { initial: 'Q' }, { name: 'Beatrice' }];
    let answers: Awaited<ReturnType<typeof add>>[] = [];
    const statements = await statementsOf(async () => {
      answers = await Promise.all(fields.map((one) => add({ organizationId: 'o', users: [{ userId: 'b', ...one }] })));
    });
    expect(statements).toBe(1);
    expect(answers.map((answer) => messages(answer)['b'])).toEqual(['User added.', ...Array<string>(3).fill('User updated.')]);
    expect(await on.user('b')).toEqual({ name: 'Beatrice', email: 'bea@example.com', initial: 'Q' });
  });

  it('of one API key, organization and level only', async () => {
    const call = { organizationId: 'p', users: users('b') };
    const targets = [{}, { documentId: 'd' }, { folderId: 'd' }, { organizationId: 'q' }];
    const statements = await statementsOf(() =>
      Promise.all([...targets.map((target) => add({ ...call, ...target })), add(call, { apiKey: 'two' })]),
    );
    expect(statements).toBeGreaterThanOrEqual(5);
    expect(await on.organizationMembers()).toEqual(['one/o/a', 'one/p/b', 'one/q/b', 'two/p/b']);
    expect([await on.documentMembers(), await on.folderMembers()]).toEqual([['d/b'], ['d/b']]);
  });

  it('and each Idempotency-Key has its own answer', async () => {
    const keys = ['k1', 'k2', 'k3'];
    const call = { organizationId: 'o', users: users('b') };
    const first = await Promise.all(keys.map((idempotencyKey) => add(call, { idempotencyKey })));
    expect(await on.values('SELECT key FROM idempotency_keys')).toEqual(keys);
    const again = await Promise.all(keys.map((idempotencyKey) => add(call, { idempotencyKey })));
    expect(again).toEqual(first);
  });

  it('and nothing is left of a level without calls', async () => {
    const writer = new MembersWriter(on.members);
    const { queues } = writer as unknown as { queues: Map<string, unknown> };
    const call = { apiKey: 'one', organizationId: 'o', users: [{ userId: 'a', initialGenerated: true }] };
    const added = ['d', 'd', 'e'].map((id) => writer.add({ ...call, level: { of: 'document', id } }));
    expect(queues.size).toBe(2);
    await Promise.all(added);
    await eventually(() => queues.size === 0);
  });
});

describe('users/add: a call does not suffer from those beside it', () => {
  it('when its statement waits for the user of another one', async () => {
    await on.holding(HELD, async (rival) => {
      const [held, ...others] = addEach('a', 'b', 'c');
      await rival.waiting(1);
      const answers = await Promise.all(others);
      expect(answers.map((answer) => messages(answer))).toEqual([{ b: 'User added.' }, { c: 'User added.' }]);
      expect(await refusal(held)).toMatchObject({ status: 'UNAVAILABLE' });
    });
  });

  it('when it comes while another one waits, and names other users', async () => {
    await on.holding(HELD, async (rival) => {
      const held = addEach('a');
      await rival.waiting(1);
      // Calls for the held user leave the second statement to others.
      const again = addEach('a', 'a');
      expect(messages(await addEach('b')[0])).toEqual({ b: 'User added.' });
      expect(await rival.waiting(1)).toHaveLength(1);
      await rival.query('COMMIT');
      await Promise.all([...held, ...again]);
    });
    expect(await on.user('a')).toMatchObject({ name: 'New', email: 'held' });
  });

  it('when its deadline is near', async () => {
    await on.holding(HELD, async (rival) => {
      let held: Promise<unknown>[] = [];
      const statements = await statementsOf(async () => {
        held = addEach('a', 'b');
        const hurried = add({ organizationId: 'o', users: users('c') }, { deadline: Date.now() + 1900 });
        expect(messages(await hurried)).toEqual({ c: 'User added.' });
      });
      // Its own with its time limit, and that of the others, which has the usual one.
      expect(statements).toBe(4);
      await rival.query('ROLLBACK');
      await Promise.all(held);
    });
  });

  it('when its deadline has come near while it waited', async () => {
    await add({ organizationId: 'o', users: users('b') });
    await eventsOf();
    await on.holding(`UPDATE users SET email = 'held' WHERE user_id IN ('a', 'b')`, async (rival) => {
      const held: Promise<unknown>[] = [];
      for (const [index, userId] of ['a', 'b'].entries()) {
        held.push(...addEach(userId));
        await rival.waiting(index + 1);
      }
      const hurried = add({ organizationId: 'o', users: users('c') }, { deadline: Date.now() + 3500 });
      await Promise.all([hurried, ...addEach('d', 'e')]);
      await Promise.allSettled(held);
    });
    const events = await eventsOf();
    expect(events.map(({ users: added = [] }) => added.map(({ userId }) => userId)).sort()).toEqual([['c'], ['d', 'e']]);
  });

  it('when all statements wait for the users of others, and try them once more', async () => {
    await add({ organizationId: 'o', users: users('b') });
    await on.holding(`UPDATE users SET email = 'held' WHERE user_id IN ('a', 'b')`, async (rival) => {
      const held = addEach('a', 'c');
      await rival.waiting(1);
      held.push(...addEach('b', 'd'));
      await rival.waiting(2);
      const call = add({ organizationId: 'o', users: users('e') }, { deadline: Date.now() + 3000 });
      expect(messages(await call)).toEqual({ e: 'User added.' });
      await rival.query('ROLLBACK');
      await Promise.allSettled(held);
    });
  });

  it('and a later one does not overtake it at one of its users', async () => {
    await on.holding(HELD, async (rival) => {
      const held = addEach('a');
      await rival.waiting(1);
      for (const [name, ...ids] of [
        ['Earlier', 'a', 'b'],
        ['Later', 'b'],
      ])
        held.push(add({ organizationId: 'o', users: ids.map((userId) => ({ userId, name })) }));
      expect(messages(await addEach('c')[0])).toEqual({ c: 'User added.' });
      await rival.query('COMMIT');
      await Promise.all(held);
    });
    expect(await on.user('b')).toMatchObject({ name: 'Later' });
  });

  it('but all learn that the database is away', async () => {
    await on.holding(HELD, async (rival) => {
      const calls = addEach('a', 'b').map((call) => refusal(call));
      const [pid] = await rival.waiting(1);
      await rival.query('SELECT pg_terminate_backend($1)', [pid]);
      expect(await Promise.all(calls)).toEqual([expect.any(Error), expect.any(Error)]);
    });
    // The pool may hand out the ended connection once more.
    expect(await eventually(() => on.organizationMembers())).toEqual(['one/o/a']);
  });
});
