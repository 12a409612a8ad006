import { messages, numbered, refusal, statementsOf, users, usersOnDatabase } from '../../../test/users';

const on = usersOnDatabase();

const add: typeof on.add = (...call) => on.add(...call);

describe('users/add: levels', () => {
  it('adds to the organization, and creates it', async () => {
    expect(messages(await add({ organizationId: 'o', users: users('a', 'b') }))).toEqual({ a: 'User added.', b: 'User added.' });
    expect(await on.organizationMembers()).toEqual(['one/o/a', 'one/o/b']);
    expect(await on.folderMembers()).toEqual([]);
    expect(await on.documentMembers()).toEqual([]);
  });

  it('adds to a folder only', async () => {
    await add({ organizationId: 'o', folderId: 'f', users: users('a') });
    expect(await on.folderMembers()).toEqual(['f/a']);
    expect(await on.organizationMembers()).toEqual([]);
    expect(await on.documentMembers()).toEqual([]);
  });

  it('adds to a document only, even when a folder is named too', async () => {
    await add({ organizationId: 'o', folderId: 'f', documentId: 'd', users: users('a') });
    expect(await on.documentMembers()).toEqual(['d/a']);
    expect(await on.folderMembers()).toEqual([]);
    expect(await on.organizationMembers()).toEqual([]);
    expect(await on.values('SELECT folder_id FROM folders')).toEqual([]);
  });

  it('adds a user of a document to the organization with another call', async () => {
    await add({ organizationId: 'o', documentId: 'd', users: [{ userId: 'a', name: 'Ada' }] });
    expect(messages(await add({ organizationId: 'o', users: users('a') }))).toEqual({ a: 'User added.' });
    expect(await on.organizationMembers()).toEqual(['one/o/a']);
    expect(await on.documentMembers()).toEqual(['d/a']);
  });

  it('says updated only for a user who was at that level', async () => {
    const levels = [{}, { folderId: 'f' }, { folderId: 'g' }, { documentId: 'f' }, { documentId: 'g' }];
    for (const level of levels) {
      expect(messages(await add({ organizationId: 'o', ...level, users: users('a') }))).toEqual({ a: 'User added.' });
      const again = await add({ organizationId: 'o', ...level, users: users('a', 'b') });
      expect(messages(again)).toEqual({ a: 'User updated.', b: 'User added.' });
    }
  });

  it('keeps two tenants with equal ids apart', async () => {
    await add({ organizationId: 'o', documentId: 'd', users: [{ userId: 'a', name: 'Ada' }] }, { apiKey: 'one' });
    const other = await add({ organizationId: 'o', documentId: 'd', users: [{ userId: 'a', name: 'Bob' }] }, { apiKey: 'two' });
    expect(messages(other)).toEqual({ a: 'User added.' });
    expect(await on.values('SELECT name FROM users')).toEqual(['Ada', 'Bob']);
    expect(await on.values('SELECT api_key || organization_id FROM organizations')).toEqual(['oneo', 'twoo']);
  });

  it('refuses an unknown API key and stores nothing', async () => {
    const error = await refusal(add({ organizationId: 'o', users: users('a') }, { apiKey: 'none', idempotencyKey: 'k' }));
    expect(error).toMatchObject({ status: 'UNAUTHENTICATED', message: 'The API key is unknown.' });
    expect(await on.values('SELECT key FROM idempotency_keys')).toEqual([]);
  });
});

describe('users/add: values', () => {
  const put = (user: object) => add({ organizationId: 'o', users: [{ userId: 'a', ...user }] });

  it('overwrites the values that were sent and keeps the others', async () => {
    await put({ name: 'Ada', email: 'ada@x' });
    await put({ email: 'new@x' });
    expect(await on.user('a')).toEqual({ name: 'Ada', email: 'new@x', initial: 'A' });
    await put({});
    expect(await on.user('a')).toEqual({ name: 'Ada', email: 'new@x', initial: 'A' });
    await put({ name: 'Grace' });
    expect(await on.user('a')).toEqual({ name: 'Grace', email: 'new@x', initial: 'G' });
  });

  it('generates the initial when a name comes later, and drops it with the name', async () => {
    await put({});
    expect(await on.user('a')).toEqual({ name: null, email: null, initial: null });
    await put({ name: 'Ada' });
    expect(await on.user('a')).toMatchObject({ initial: 'A' });
    await put({ name: '' });
    expect(await on.user('a')).toMatchObject({ name: '', initial: null });
  });

  it('keeps an initial that was sent until one is sent again', async () => {
    await put({ name: 'Ada' });
    await put({ initial: 'Q' });
    await put({ name: 'Grace' });
    await put({ name: 'Hedy' });
    expect(await on.user('a')).toMatchObject({ name: 'Hedy', initial: 'Q' });
    await put({ name: 'Grace', initial: 'Z' });
    expect(await on.user('a')).toMatchObject({ initial: 'Z' });
  });

  it('keeps an initial that was sent, even if it equals the generated one', async () => {
    await put({ name: 'Ada' });
    await put({ initial: 'A' });
    await put({ name: 'Grace' });
    expect(await on.user('a')).toMatchObject({ name: 'Grace', initial: 'A' });
  });

  it('stores the other users when entries fail', async () => {
    const answer = await add({
      organizationId: 'o',
      users: [
        { userId: 'bad', email: 'x' },
        { userId: 'good', email: 'a@x' },
      ],
    });
    expect(answer).toMatchObject({ status: 'success', message: 'User(s) processed, 1 of 2 failed.' });
    expect(answer.data).toMatchObject({ bad: { success: false }, good: { success: true, message: 'User added.' } });
    expect(await on.organizationMembers()).toEqual(['one/o/good']);
  });

  it('creates the organization and the document although every entry fails', async () => {
    const answer = await add({ organizationId: 'o', documentId: 'd', users: [{ userId: 'bad', name: '\n' }] });
    expect(answer.message).toBe('User(s) processed, 1 of 1 failed.');
    expect(await on.values('SELECT organization_id FROM organizations')).toEqual(['o']);
    expect(await on.values('SELECT document_id FROM documents')).toEqual(['d']);
    expect(await on.values('SELECT user_id FROM users')).toEqual([]);
  });

  it('stores identifiers of 256 bytes and of any characters', async () => {
    const long = '😀'.repeat(64);
    const odd = ['__proto__', 'constructor', 'NULL', '{}', ',', '"', '\\', `'`, long];
    const answer = await add({ organizationId: long, documentId: long, users: users(...odd) });
    expect(Object.keys(answer.data)).toEqual(odd);
    expect(await on.values('SELECT user_id FROM users')).toEqual(odd.toSorted());
  });

  it('writes no new version of an unchanged user', async () => {
    const version = () => on.values('SELECT xmin::text || ctid::text FROM users');
    await put({ name: 'Ada', email: 'a@x' });
    const before = await version();
    await put({ name: 'Ada', email: 'a@x' });
    await put({});
    expect(await version()).toEqual(before);
  });
});

describe('users/add: one statement', () => {
  it('adds 1000 users to a document of a new organization', async () => {
    const request = { organizationId: 'o', documentId: 'd', users: numbered(1000) };
    expect(await statementsOf(() => add(request, { idempotencyKey: 'k' }))).toBe(1);
    expect(await on.documentMembers()).toHaveLength(1000);
  });
});
