import type { GetUsersRequest } from '@app/contracts/users.get';
import { MOST_LOOKED_AT } from '../db/access.repository';
import { users, usersOnDatabase } from '../../test/users';

const on = usersOnDatabase();

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

  it('looks at a limited number of members for one page, of whom all may have left, and goes on behind them', async () => {
    await on.add({ organizationId: 'org', documentId: 'd', users: users('zoe') });
    await on.dataSource.query(
      `INSERT INTO users (organization, user_id, initial_generated, left_version)
       SELECT organization, 'left-' || n, true, 9000000000 FROM users, generate_series(1, $1::int) n`,
      [MOST_LOOKED_AT + 1],
    );
    await on.dataSource.query(
      `INSERT INTO document_members (organization, document_id, user_id) SELECT organization, 'd', user_id FROM users WHERE user_id <> 'zoe'`,
    );
    const level = { organizationId: 'org', documentId: 'd' };
    const first = await get({ ...level, pageSize: 1 });
    expect(first).toMatchObject({ data: [], pageToken: expect.any(String) as string });
    const second = await get({ ...level, pageToken: first.pageToken });
    expect([second.data.map(({ userId }) => userId), second.pageToken]).toEqual([['zoe'], undefined]);
    expect(await ids({ ...level, userIds: ['left-7', 'zoe'] })).toEqual(['zoe']);
    const contacts = await on.listContacts({ ...level });
    expect(contacts.users).toEqual([]);
    expect(await on.listContacts({ ...level, after: contacts.next })).toMatchObject({ users: [{ userId: 'zoe' }] });
  });
});
