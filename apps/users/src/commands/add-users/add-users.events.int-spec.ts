import { usersOnDatabase } from '../../../test/users';

describe('users/add publishes events', () => {
  const on = usersOnDatabase();

  /** Publishes all waiting events, and returns the new ones. */
  const published = async () => {
    await on.published();
    return on.events
      .splice(0)
      .map(({ type, data, apiKey, organizationId }) => ({ type, apiKey, organizationId, ...(JSON.parse(data) as object) }))
      .sort((a, b) => (a.type < b.type ? -1 : 1));
  };
  const ada = { userId: 'ada', name: 'Ada', email: 'ada@example.com' };
  const version = expect.any(Number) as number;

  it('for a new organization and its users, with the tenant', async () => {
    await on.add({ organizationId: 'org', users: [ada, { userId: 'grace' }] }, { apiKey: 'two' });
    expect(await published()).toEqual([
      { type: 'organization.created.v1', apiKey: 'two', organizationId: 'org', version: 1 },
      {
        type: 'user.added.v1',
        apiKey: 'two',
        organizationId: 'org',
        users: expect.arrayContaining([
          { ...ada, initial: 'A', version, membership: version },
          { userId: 'grace', version, membership: version },
        ]) as unknown[],
      },
    ]);
  });

  it('for a known user who is new at a level; not for an unchanged user', async () => {
    await on.add({ organizationId: 'org', users: [ada] });
    await published();
    await on.add({ organizationId: 'org', folderId: 'f', users: [ada] });
    await on.add({ organizationId: 'org', documentId: 'd', folderId: 'f', users: [ada] });
    const users = [{ ...ada, initial: 'A', version, membership: version }];
    expect(await published()).toEqual([
      { type: 'user.added.v1', apiKey: 'one', organizationId: 'org', folderId: 'f', users },
      { type: 'user.added.v1', apiKey: 'one', organizationId: 'org', documentId: 'd', users },
    ]);
    await on.add({ organizationId: 'org', users: [ada] });
    await on.add({ organizationId: 'org', folderId: 'f', users: [ada] });
    expect(await published()).toEqual([]);
  });

  it('for changed details, with a growing version and that of the membership', async () => {
    const versions: number[] = [];
    const memberships = new Set<number | undefined>();
    for (const name of ['Ada', 'Ada L', 'Ada Lovelace']) {
      await on.add({ organizationId: 'org', users: [{ ...ada, name }] });
      const event = (await published()).at(-1) as unknown as { users: { name: string; version: number; membership: number }[] };
      expect(event.users[0]?.name).toBe(name);
      versions.push(event.users[0]?.version ?? 0);
      memberships.add(event.users[0]?.membership);
    }
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
    expect([...memberships]).toEqual([expect.any(Number)]);
  });

  it('for all users added by concurrent calls', async () => {
    const calls = Array.from({ length: 40 }, (_, call) =>
      on.add({ organizationId: 'org', ...(call % 2 ? { documentId: 'd' } : {}), users: [ada, { userId: `u${call >> 1}` }] }),
    );
    await Promise.all(calls);
    const events = (await published()) as unknown as { type: string; documentId?: string; users?: { userId: string }[] }[];
    const members = (documentId?: string) =>
      new Set(
        events
          .filter((event) => event.type === 'user.added.v1' && event.documentId === documentId)
          .flatMap(({ users = [] }) => users.map(({ userId }) => userId)),
      );
    expect([...members()].map((userId) => `one/org/${userId}`).sort()).toEqual(await on.organizationMembers());
    expect([...members('d')].map((userId) => `d/${userId}`).sort()).toEqual(await on.documentMembers());
  });
});
