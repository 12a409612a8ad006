import type { ApiError } from '@app/contracts/error';
import type { AddUsersResult } from '@app/contracts/users.add';
import { messages, refusal, users, usersOnDatabase } from '../../../test/users';

const on = usersOnDatabase();

const add: typeof on.add = (...call) => on.add(...call);

const USER_A = `UPDATE users SET email = 'held' WHERE user_id = 'a'`;

describe('users/add: Idempotency-Key', () => {
  const request = {
    organizationId: 'o',
    users: [{ userId: 'a', name: 'Ada' }, { userId: '__proto__' }, { userId: 'bad', name: '\n' }],
  };
  const json = (answer: AddUsersResult) => JSON.stringify(answer);

  it('answers a repetition with the first answer, and changes nothing', async () => {
    const first = await add(request, { idempotencyKey: 'k' });
    expect(messages(first)).toMatchObject({ a: 'User added.', bad: 'name must not contain control characters' });
    await add({ organizationId: 'o', users: [{ userId: 'a', name: 'Grace' }] });
    expect(json(await add(request, { idempotencyKey: 'k' }))).toBe(json(first));
    expect(await on.user('a')).toMatchObject({ name: 'Grace' });
  });

  it('ignores the order of the fields of a request', async () => {
    const answers = [
      await add({ organizationId: 'o', users: [{ userId: 'a', name: 'Ada' }] }, { idempotencyKey: 'k' }),
      await add({ users: [{ name: 'Ada', userId: 'a' }], organizationId: 'o' }, { idempotencyKey: 'k' }),
    ];
    expect(answers.map((answer) => messages(answer))).toEqual([{ a: 'User added.' }, { a: 'User added.' }]);
  });

  it('refuses another request under the same key', async () => {
    await add(request, { idempotencyKey: 'k' });
    const error = await refusal(add({ ...request, documentId: 'd' }, { idempotencyKey: 'k' }));
    expect(error).toMatchObject({ status: 'FAILED_PRECONDITION' });
    expect(await on.documentMembers()).toEqual([]);
  });

  it('is separate for each tenant', async () => {
    await add(request, { idempotencyKey: 'k' });
    const other = await add({ organizationId: 'p', users: users('b') }, { idempotencyKey: 'k', apiKey: 'two' });
    expect(messages(other)).toEqual({ b: 'User added.' });
  });

  it('has one effect and one answer for 50 calls at the same time', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => add(request, { idempotencyKey: 'k' })));
    expect(new Set(answers.map(json)).size).toBe(1);
    expect(messages(answers[0])).toMatchObject({ a: 'User added.' });
    expect(await on.values('SELECT key FROM idempotency_keys')).toEqual(['k']);
  });

  it('waits for a running call with the same key, and returns its answer', async () => {
    await add({ organizationId: 'o', documentId: 'd', users: users('a') });
    await on.holding(USER_A, async (rival) => {
      const answers = Promise.all([1, 2, 3].map(() => add(request, { idempotencyKey: 'k' })));
      await rival.waiting(3);
      await rival.query('COMMIT');
      expect(new Set((await answers).map(json)).size).toBe(1);
      expect(messages((await answers)[0])).toMatchObject({ a: 'User added.' });
    });
  });

  it('lets one of many different requests win', async () => {
    const calls = Array.from({ length: 20 }, (_, index) =>
      add({ organizationId: 'o', users: users(`u${index}`) }, { idempotencyKey: 'k' }),
    );
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const reasons = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as ApiError] : []));
    expect(new Set(reasons.map((reason) => reason.status))).toEqual(new Set(['FAILED_PRECONDITION']));
    expect(await on.values('SELECT user_id FROM users')).toHaveLength(1);
  });

  it('deletes some expired keys with each new one, and no valid key', async () => {
    await on.dataSource.query(`
      INSERT INTO idempotency_keys (api_key, operation, key, fingerprint, answer, created_at)
      SELECT 'one', 'users.add', 'old' || n, ''::bytea, '{}'::json, now() - interval '3 days' FROM generate_series(1, 15) AS n
      UNION ALL SELECT 'two', 'users.add', 'day', '', '{}', now() - interval '24 hours 1 minute'`);
    await add(request);
    expect(await on.values('SELECT key FROM idempotency_keys')).toHaveLength(16);
    await add(request, { idempotencyKey: 'k1' });
    expect(await on.values('SELECT key FROM idempotency_keys')).toHaveLength(7);
    await add(request, { idempotencyKey: 'k2' });
    expect(await on.values('SELECT key FROM idempotency_keys')).toEqual(['day', 'k1', 'k2']);
  });
});
