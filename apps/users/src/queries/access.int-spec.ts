import type { AccessType } from '@app/contracts/access';
import type { ListContactsRequest } from '@app/contracts/contacts.list';
import { eventually } from '@app/testing/eventually';
import { DocumentsRepository } from '../db/documents.repository';
import { usersOnDatabase } from '../../test/users';

const on = usersOnDatabase();

const add = (userId: string, where: { documentId?: string; folderId?: string } = {}, apiKey?: string) =>
  on.add({ organizationId: 'org', users: [{ userId }], ...where }, { apiKey });
const level = async (userId: string, documentId = 'd', apiKey?: string) => {
  const { allowed, level: found } = await on.checkAccess({ organizationId: 'org', documentId, userId }, apiKey);
  expect(allowed).toBe(found !== undefined);
  return found;
};
const set = (access?: AccessType, folderId?: string, documentId = 'd', apiKey?: string) =>
  on.setDocument({ organizationId: 'org', documentId, folderId, access }, { apiKey });

describe('access.check', () => {
  beforeEach(async () => {
    await add('of organization');
    await add('of folder', { folderId: 'f' });
    await add('of document', { documentId: 'd' });
    await add('of other', { documentId: 'other' });
  });

  it.each<[string, AccessType | undefined, string | undefined, Record<string, string | undefined>]>([
    ['it was never set', undefined, undefined, { 'of organization': 'organization', 'of document': 'document' }],
    [
      'it is organizationPrivate',
      'organizationPrivate',
      'f',
      { 'of organization': 'organization', 'of folder': 'folder', 'of document': 'document' },
    ],
    ['it is restricted', 'restricted', 'f', { 'of folder': 'folder', 'of document': 'document' }],
    ['it is restricted and in no folder', 'restricted', undefined, { 'of document': 'document' }],
    ['it is in another folder', 'organizationPrivate', 'g', { 'of organization': 'organization', 'of document': 'document' }],
    [
      'it is public',
      'public',
      'f',
      {
        'of organization': 'organization',
        'of folder': 'folder',
        'of document': 'document',
        'of other': 'public',
        stranger: 'public',
      },
    ],
  ])('knows who may open a document when %s', async (_, access, folderId, expected) => {
    if (access) await set(access, folderId);
    const users = ['of organization', 'of folder', 'of document', 'of other', 'stranger'];
    const found: [string, string | undefined][] = [];
    for (const userId of users) found.push([userId, await level(userId)]);
    expect(Object.fromEntries(found.filter(([, one]) => one !== undefined))).toEqual(expected);
  });

  it('returns the narrowest level of a user who was added at several levels', async () => {
    await set('organizationPrivate', 'f');
    await add('everywhere');
    expect(await level('everywhere')).toBe('organization');
    await add('everywhere', { folderId: 'f' });
    expect(await level('everywhere')).toBe('folder');
    await add('everywhere', { documentId: 'd' });
    expect(await level('everywhere')).toBe('document');
  });

  it('treats an unknown document as organizationPrivate', async () => {
    expect(await level('of organization', 'new')).toBe('organization');
    expect(await level('of document', 'new')).toBeUndefined();
  });

  it('keeps tenants and organizations apart', async () => {
    await set('public');
    expect(await level('of document', 'd', 'two')).toBeUndefined();
    const elsewhere = { organizationId: 'other', documentId: 'd', userId: 'of document' };
    expect(await on.checkAccess(elsewhere)).toEqual({ allowed: false });
  });
});

describe('documents.set', () => {
  it('sets folder and access together, increases the version, and ignores a repetition', async () => {
    const first = await set('restricted', 'f');
    const message = 'Document set successfully.';
    expect(await set('restricted', 'f')).toEqual({
      status: 'success',
      message,
      data: { success: true, message, access: 'restricted', folderId: 'f', version: first.version },
      version: first.version,
      changed: false,
    });
    const second = await set();
    expect(second.changed).toBe(true);
    expect(second.data).toEqual({ success: true, message, access: 'organizationPrivate', version: second.version });
    expect(second.version).toBeGreaterThan(first.version);
    await eventually(() => on.events.filter(({ type }) => type === 'document.changed.v1').length === 2);
    const published = on.events
      .filter(({ type }) => type === 'document.changed.v1')
      .map(({ data }) => JSON.parse(data) as unknown);
    expect(published).toEqual([
      { organizationId: 'org', documentId: 'd', folderId: 'f', access: 'restricted', version: first.version },
      { organizationId: 'org', documentId: 'd', access: 'organizationPrivate', version: second.version },
    ]);
  });

  it('keeps the change with the greatest version of many concurrent ones', async () => {
    const answers = await Promise.all(Array.from({ length: 30 }, (_, n) => set(n % 2 ? 'public' : 'restricted', `f${n % 3}`)));
    const last = answers.toSorted((a, b) => a.version - b.version).at(-1);
    const [stored] = await on.values(`SELECT version::text FROM documents`);
    expect(Number(stored)).toBe(last?.version);
  });

  it('answers with the version of what it has set, also when another call sets something else just then', async () => {
    await set('restricted');
    const { dataSource } = on;
    const query = dataSource.query.bind(dataSource);
    // The statement that sets has found nothing to change, and that for the version has not begun.
    const between = jest.spyOn(dataSource, 'query').mockImplementationOnce(async (...asked) => {
      await set('public');
      return query(...asked);
    });
    const { version } = await set('restricted');
    expect(between).toHaveBeenCalled();
    between.mockRestore();
    expect(await on.values(`SELECT access || ' ' || version FROM documents`)).toEqual([`restricted ${version}`]);
  });

  it('does nothing after its deadline, and nothing for an unknown API key', async () => {
    await expect(on.setDocument({ organizationId: 'org', documentId: 'd' }, { deadline: Date.now() - 1 })).rejects.toMatchObject({
      status: 'UNAVAILABLE',
    });
    await expect(on.setDocument({ organizationId: 'org', documentId: 'd' }, { apiKey: 'none' })).rejects.toMatchObject({
      status: 'UNAUTHENTICATED',
    });
    expect(await on.values('SELECT document_id FROM documents')).toEqual([]);
  });

  it('does nothing when the statement reaches the database too late', async () => {
    const document = { apiKey: 'one', organizationId: 'org', documentId: 'd', access: 'public', deadline: Date.now() - 500 };
    expect(await new DocumentsRepository(on.dataSource).set(document)).toEqual({ outcome: 'missed' });
    expect(await on.values('SELECT organization_id FROM organizations')).toEqual([]);
  });
});

describe('contacts.list', () => {
  const list = async (request: Partial<ListContactsRequest> = {}, apiKey?: string) => {
    const { users, next } = await on.listContacts({ organizationId: 'org', ...request }, apiKey);
    return { ids: users.map(({ userId }) => userId), next };
  };

  it('lists users added to the organization or to the document, not users added to a folder', async () => {
    await add('a');
    await add('b', { folderId: 'f' });
    await add('c', { documentId: 'd', folderId: 'f' });
    await add('d', {}, 'two');
    expect(await list()).toEqual({ ids: ['a'], next: undefined });
    expect(await list({ documentId: 'd' })).toEqual({ ids: ['c'], next: undefined });
    expect(await list({ documentId: 'none' })).toEqual({ ids: [], next: undefined });
    expect(await list({}, 'two')).toEqual({ ids: ['d'], next: undefined });
    expect(await list({ organizationId: 'none' })).toEqual({ ids: [], next: undefined });
  });

  it('returns their details, in pages by id', async () => {
    const users = ['ä', 'b', 'B', '10', '9'].map((userId) => ({ userId, name: `N ${userId}`, email: 'x@y' }));
    await on.add({ organizationId: 'org', users: [...users, { userId: 'nameless' }] });
    const ids: string[] = [];
    let next: string | undefined;
    do {
      const page = await list({ pageSize: 2, after: next });
      ids.push(...page.ids);
      ({ next } = page);
    } while (next !== undefined);
    expect(ids).toEqual(['10', '9', 'B', 'b', 'nameless', 'ä']);
    const {
      users: [first, , , , fifth],
    } = await on.listContacts({ organizationId: 'org' });
    expect(first).toEqual({ userId: '10', name: 'N 10', email: 'x@y', initial: 'N' });
    expect(fifth).toEqual({ userId: 'nameless' });
  });
});
