import type { DeleteUsersRequest } from '@app/contracts/users.delete';
import { numbered, refusal, statementsOf, users, usersOnDatabase } from '../../test/users';

const on = usersOnDatabase();

const add = (userIds: string[], where: { documentId?: string; folderId?: string } = {}) =>
  on.add({ organizationId: 'org', users: users(...userIds), ...where });
const remove = (userIds: string[], where: Partial<DeleteUsersRequest> = {}, call = {}) =>
  on.delete({ organizationId: 'org', userIds, ...where }, call);
const levelOf = async (userId: string) => (await on.checkAccess({ organizationId: 'org', documentId: 'd', userId })).level;
const contacts = async (documentId?: string) =>
  (await on.listContacts({ organizationId: 'org', documentId })).users.map(({ userId }) => userId);
const REMOVED = { success: true, message: 'User removed.' };
const NOT_THERE = { success: false, message: 'User does not exist.' };

interface PublishedEvent {
  type: string;
  apiKey: string;
  folderId?: string;
  documentId?: string;
  users: { userId: string; membership?: number; version: number }[];
}
/** Publishes all waiting events, and returns the new ones. */
const published = async () => {
  await on.published();
  return on.events
    .splice(0)
    .map(({ type, apiKey, data }) => ({ type, apiKey, ...(JSON.parse(data) as object) }) as PublishedEvent);
};

describe('users/delete', () => {
  it('ends one membership, and leaves the others', async () => {
    await on.setDocument({ organizationId: 'org', documentId: 'd', folderId: 'f' });
    await add(['a', 'b']);
    await add(['a', 'b'], { folderId: 'f' });
    await add(['a', 'b'], { documentId: 'd' });
    expect(await remove(['a', 'nobody', 'a'], { documentId: 'd', folderId: 'f' })).toEqual({
      status: 'success',
      message: 'User(s) deleted successfully.',
      data: { a: REMOVED, nobody: NOT_THERE },
    });
    expect([await levelOf('a'), await levelOf('b')]).toEqual(['folder', 'document']);
    expect(await contacts('d')).toEqual(['b']);
    expect((await remove(['a'], { folderId: 'f' })).data).toEqual({ a: REMOVED });
    expect(await levelOf('a')).toBe('organization');
    expect((await remove(['a'], { folderId: 'f' })).data).toEqual({ a: NOT_THERE });
    expect(await contacts()).toEqual(['a', 'b']);
  });

  it('without a folder and a document ends all memberships in the organization', async () => {
    await add(['a'], { folderId: 'f' });
    await add(['a', 'b'], { documentId: 'd' });
    await on.add({ organizationId: 'other', users: users('a') });
    expect((await remove(['a', 'c'])).data).toEqual({ a: REMOVED, c: NOT_THERE });
    expect(await contacts('d')).toEqual(['b']);
    expect(await on.listMemberships('a')).toEqual({ memberships: [], more: false, left: expect.any(Number) as number });
    expect((await remove(['a'])).data).toEqual({ a: NOT_THERE });
    expect((await remove(['a'], { documentId: 'd' })).data).toEqual({ a: NOT_THERE });
    expect((await on.listMemberships('a', 'other')).memberships).toHaveLength(1);
  });

  it('keeps the details of a user, who can be added again and gets no earlier membership back', async () => {
    await on.add({ organizationId: 'org', users: [{ userId: 'a', name: 'Ada' }] });
    await add(['a'], { documentId: 'd' });
    await remove(['a']);
    const added = await add(['a']);
    expect(added.data.a.message).toBe('User added.');
    expect((await on.listContacts({ organizationId: 'org' })).users).toEqual([{ userId: 'a', name: 'Ada', initial: 'A' }]);
    expect(await contacts('d')).toEqual([]);
    expect((await add(['a'], { documentId: 'd' })).data.a.message).toBe('User added.');
    expect((await add(['a'], { documentId: 'd' })).data.a.message).toBe('User updated.');
    await remove(['a'], { documentId: 'd' });
    expect((await add(['a'], { documentId: 'd' })).data.a.message).toBe('User added.');
  });

  it('keeps tenants and organizations apart, and creates nothing', async () => {
    await add(['a']);
    expect((await remove(['a'], {}, { apiKey: 'two' })).data).toEqual({ a: NOT_THERE });
    expect((await remove(['a'], { organizationId: 'none' })).data).toEqual({ a: NOT_THERE });
    expect(await refusal(remove(['a'], {}, { apiKey: 'none' }))).toMatchObject({ status: 'UNAUTHENTICATED' });
    expect(await contacts()).toEqual(['a']);
    expect(await on.values('SELECT organization_id FROM organizations')).toEqual(['org']);
  });

  it('treats __proto__ as any other user', async () => {
    await add(['__proto__']);
    const { data } = await remove(['__proto__']);
    expect(Object.entries(data)).toEqual([['__proto__', REMOVED]]);
  });

  it('publishes the removed users with growing versions, and nothing for others', async () => {
    await add(['a', 'b'], { documentId: 'd' });
    const first = (await published()).find(({ type }) => type === 'user.added.v1')!;
    await remove(['b', 'a', 'c'], { documentId: 'd' });
    const [ended] = await published();
    expect(ended).toEqual({
      type: 'user.removed.v1',
      apiKey: 'one',
      organizationId: 'org',
      documentId: 'd',
      users: expect.arrayContaining(['a', 'b'].map((userId) => ({ userId, version: expect.any(Number) as number }))) as unknown,
    });
    expect(ended.users).toHaveLength(2);
    const newest = Math.max(...first.users.map(({ membership }) => membership ?? 0));
    expect(Math.min(...ended.users.map(({ version }) => version))).toBeGreaterThan(newest);
    await remove(['a', 'b'], { documentId: 'd' });
    expect(await published()).toEqual([]);
    await add(['a'], { documentId: 'd' });
    await remove(['a']);
    const [again, gone] = await published();
    expect(again.users[0].membership).toBeGreaterThan(ended.users[0].version);
    expect(gone).toEqual({
      type: 'user.removed.v1',
      apiKey: 'one',
      organizationId: 'org',
      users: [{ userId: 'a', version: expect.any(Number) as number }],
    });
    expect(gone.users[0].version).toBeGreaterThan(again.users[0].membership!);
  });
});

describe('users/delete: one effect', () => {
  it.each([{ idempotencyKey: 'k' }, { messageId: 'm' }])(
    'answers a repetition with %j as before, and changes nothing',
    async (same) => {
      await add(['a']);
      const first = await remove(['a', 'b'], {}, same);
      await add(['a', 'b']);
      expect(await remove(['a', 'b'], {}, same)).toEqual(first);
      expect(await contacts()).toEqual(['a', 'b']);
      expect(await refusal(remove(['a'], {}, same))).toMatchObject({ status: 'FAILED_PRECONDITION' });
    },
  );

  it('remembers the answer about an organization that did not exist', async () => {
    const first = await remove(['a'], {}, { messageId: 'm' });
    await add(['a']);
    expect(await remove(['a'], {}, { messageId: 'm' })).toEqual(first);
    expect(await contacts()).toEqual(['a']);
  });

  it('separates keys from messages, tenants, and the keys of users/add', async () => {
    await on.add({ organizationId: 'org', users: users('a') }, { idempotencyKey: 'k' });
    expect((await remove(['a'], {}, { idempotencyKey: 'k' })).data).toEqual({ a: REMOVED });
    expect((await remove(['a'], {}, { messageId: 'k' })).data).toEqual({ a: NOT_THERE });
    expect((await remove(['a'], {}, { idempotencyKey: 'k', apiKey: 'two' })).data).toEqual({ a: NOT_THERE });
  });

  it('has one effect and one answer for 30 calls at the same time', async () => {
    await add(['a']);
    const answers = await Promise.all(Array.from({ length: 30 }, () => remove(['a'], {}, { idempotencyKey: 'k' })));
    expect(new Set(answers.map((answer) => JSON.stringify(answer.data)))).toEqual(new Set([JSON.stringify({ a: REMOVED })]));
    await on.published();
    expect(on.events.filter(({ type }) => type === 'user.removed.v1')).toHaveLength(1);
  });

  it('needs an identity', async () => {
    for (const messageId of [undefined, ' ', 'a\u0000'])
      expect(await refusal(remove(['a'], {}, { messageId }))).toMatchObject({ status: 'INVALID_ARGUMENT' });
  });

  it('does nothing after its deadline', async () => {
    await add(['a']);
    expect(await refusal(remove(['a'], {}, { deadline: Date.now() - 1 }))).toMatchObject({ status: 'UNAVAILABLE' });
    expect(await contacts()).toEqual(['a']);
  });
});

describe('users/delete beside users/add', () => {
  const WHERE = [{}, { documentId: 'd' }, { folderId: 'f' }];

  it('publishes versions in the order in which calls changed a user', async () => {
    const ids = ['a', 'b', 'c'];
    for (const where of WHERE) await add(ids, where);
    const calls = Array.from({ length: 240 }, (_, call) => {
      const userIds = call % 5 ? ids : ids.toReversed();
      const where = WHERE[(call >> 1) % 3];
      return call % 2 ? add(userIds, where) : remove(userIds, where);
    });
    await Promise.all(calls);
    while (await on.values('SELECT id FROM outbox').then(({ length }) => length)) await on.published();
    const greatest = new Map<string, number>();
    const seen = (key: string, version = 0) => greatest.set(key, Math.max(version, greatest.get(key) ?? -1));
    for (const { type, folderId, documentId, users: changed } of await published()) {
      const level = documentId ? 'document d' : folderId ? 'folder f' : 'organization ';
      for (const { userId, membership, version } of changed ?? []) {
        if (type === 'user.added.v1') seen(`${userId} added ${level}`, membership);
        else seen(`${userId} removed ${(folderId ?? documentId) ? level : 'everywhere'}`, version);
      }
    }
    for (const userId of ids) {
      const { memberships } = await on.listMemberships(userId);
      const derived = ['document d', 'folder f', 'organization '].filter((level) => {
        const [added, ...ends] = [`added ${level}`, `removed ${level}`, 'removed everywhere'].map(
          (key) => greatest.get(`${userId} ${key}`) ?? -1,
        );
        return ends.every((end) => added > end);
      });
      expect([userId, derived]).toEqual([userId, memberships.map(({ level, id }) => `${level} ${id}`)]);
    }
  });

  it('never deadlocks when calls name the same users in opposite orders', async () => {
    const forwards = numbered(200).map(({ userId }) => userId);
    const backwards = forwards.toReversed();
    for (const where of WHERE) await add(forwards, where);
    const call = (index: number) => {
      const userIds = index % 2 ? forwards : backwards;
      return index % 4 < 2 ? add(userIds, WHERE[index % 3]) : remove(userIds, WHERE[index % 3]);
    };
    // A deadlock would show as an extra statement: the retry of the call that lost.
    expect(await statementsOf(() => Promise.all(Array.from({ length: 16 }, (_, index) => call(index))))).toBe(16);
  });

  it('removes a user whom another call adds while it waits', async () => {
    await add(['a'], { documentId: 'd' });
    await on.holding(`SELECT FROM users WHERE user_id = 'a' FOR UPDATE`, async (rival) => {
      const calls = [];
      // They get the row in this order.
      for (const call of [remove, add, remove]) {
        calls.push(call(['a'], { documentId: 'd' }));
        await rival.waiting(calls.length);
      }
      await rival.query('COMMIT');
      const answers = await Promise.all(calls);
      expect(answers.map(({ data }) => data.a.message)).toEqual(['User removed.', 'User added.', 'User removed.']);
    });
    expect(await contacts('d')).toEqual([]);
  });
});
