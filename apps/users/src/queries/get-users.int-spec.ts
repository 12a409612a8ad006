import type { GetUsersRequest } from '@app/contracts/users.get';
import { users, UsersOnDatabase } from '../../test/users';

let on: UsersOnDatabase;
beforeAll(async () => {
  on = await UsersOnDatabase.start();
});
afterAll(() => on.stop());
beforeEach(() => on.clear());

const get = (request: Partial<GetUsersRequest> = {}, apiKey?: string) =>
  on.getUsers({ organizationId: 'org', ...request }, apiKey);
const ids = async (...call: Parameters<typeof get>) => (await get(...call)).data.map(({ userId }) => userId);

describe('users/get', () => {
  it('reads the users of exactly one level', async () => {
    await on.add({ organizationId: 'org', users: users('a', 'x') });
    await on.add({ organizationId: 'org', folderId: 'f', users: users('b', 'x') });
    await on.add({ organizationId: 'org', documentId: 'd', users: users('c', 'x') });
    await on.add({ organizationId: 'org', users: users('other') }, { apiKey: 'two' });
    expect(await ids()).toEqual(['a', 'x']);
    expect(await ids({ folderId: 'f' })).toEqual(['b', 'x']);
    expect(await ids({ documentId: 'd', folderId: 'f' })).toEqual(['c', 'x']);
    expect(await ids({ documentId: 'none' })).toEqual([]);
    expect(await ids({ organizationId: 'none' })).toEqual([]);
    expect(await ids({}, 'two')).toEqual(['other']);
    expect(await ids({ userIds: ['x', 'b', 'x', 'nobody'], folderId: 'f' })).toEqual(['b', 'x']);
    expect(await ids({ userIds: [] })).toEqual([]);
    await on.delete({ organizationId: 'org', documentId: 'd', userIds: ['c'] });
    await on.delete({ organizationId: 'org', userIds: ['x'] });
    expect([await ids(), await ids({ folderId: 'f' }), await ids({ documentId: 'd' })]).toEqual([['a'], ['b'], []]);
  });

  it('answers with every field, in pages by id', async () => {
    const named = ['ä', 'b', 'B', '10', '9'].map((userId) => ({ userId, name: `N ${userId}`, email: 'x@y' }));
    await on.add({ organizationId: 'org', users: [...named, { userId: 'nameless' }] });
    const found: string[] = [];
    let pageToken: string | undefined;
    do {
      const page = await get({ pageSize: 2, pageToken });
      found.push(...page.data.map(({ userId }) => userId));
      ({ pageToken } = page);
    } while (pageToken !== undefined);
    expect(found).toEqual(['10', '9', 'B', 'b', 'nameless', 'ä']);
    const answer = await get({ userIds: ['10', 'nameless'] });
    expect(answer).toEqual({
      status: 'success',
      message: 'User(s) retrieved successfully.',
      data: [
        { userId: '10', name: 'N 10', email: 'x@y', initial: 'N' },
        { userId: 'nameless', name: '', email: '', initial: '' },
      ],
    });
  });
});
