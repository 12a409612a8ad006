import { randomUUID } from 'node:crypto';
import { EVENT_TYPES } from '@app/contracts/event-types';
import type { EraseUsersRequest } from '@app/contracts/users.erase';
import { queryPrepared } from '@app/postgres/connections/query-prepared';
import { eraseEverywhere } from '../db/erase-users.sql';
import { refusal, users, usersOnDatabase, type Call } from '../../test/users';

const on = usersOnDatabase();

/** Her name has letters that no hexadecimal digest has. */
const AMY = { userId: 'amy', name: 'Canary Amy', email: 'canary@example.com' };
const LEVELS = [{}, { folderId: 'f' }, { documentId: 'd' }];
const ANSWER = { status: 'success', message: 'Data deletion process has been initiated.', data: {} };

const erase = (request: Partial<EraseUsersRequest> = {}, call?: Call) => on.erase({ userIds: ['amy'], ...request }, call);
/** At every level. Answers are kept, one of them with a refused entry. */
const addAmy = async (organizationId = 'org', apiKey = 'one') => {
  for (const level of LEVELS) {
    const call = { apiKey, idempotencyKey: randomUUID() };
    await on.add({ organizationId, ...level, users: [{ userId: 'amy-2', name: '\n' }, AMY, { userId: 'grace' }] }, call);
  }
};

/** The tables in which some value contains a text. */
async function tablesWith(text: string): Promise<string[]> {
  const tables = await on.values(`SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'users'::regnamespace`);
  const counts = await Promise.all(
    tables.map((table) => on.values(`SELECT '${table}' FROM ${table} t WHERE t::text ILIKE '%${text}%' LIMIT 1`)),
  );
  return counts.flat();
}

const order = () => on.events.filter(({ type }) => type === EVENT_TYPES.userErased).map(({ data }) => JSON.parse(data) as object);

it('shows nothing of a user from the answer on, and keeps nothing when the order is published', async () => {
  await addAmy();
  await on.delete({ organizationId: 'org', documentId: 'd', userIds: ['amy'] });
  expect(await erase()).toEqual(ANSWER);
  for (const level of LEVELS)
    expect((await on.getUsers({ organizationId: 'org', ...level })).data).toMatchObject([{ userId: 'grace' }]);
  expect(await on.listMemberships('amy')).toMatchObject({ memberships: [] });
  // Its events may still wait for the broker.
  expect((await tablesWith('canary')).filter((table) => table !== 'outbox')).toEqual([]);
  await on.erased();
  expect(await tablesWith('amy')).toEqual([]);
  const number = expect.any(Number) as number;
  expect(order()).toEqual([{ userIds: ['amy'], version: number, upTo: number }]);
  const types = on.events.map(({ type }) => type);
  expect(types.indexOf(EVENT_TYPES.userErased)).toBeGreaterThan(types.lastIndexOf(EVENT_TYPES.userAdded));
  expect(on.events.at(-1)).toMatchObject({ apiKey: 'one', organizationId: 'one' });
});

it('leaves other users, other tenants and other organizations', async () => {
  for (const [organization, apiKey] of [
    ['org', 'one'],
    ['other', 'one'],
    ['org', 'two'],
  ])
    await addAmy(organization, apiKey);
  await erase({ organizationIds: ['org', 'unknown'] });
  await on.erased();
  const left = async () =>
    on.values(`SELECT api_key || '/' || organization_id || '/' || user_id FROM users JOIN organizations ON id = organization`);
  expect(await left()).toEqual(['one/org/grace', 'one/other/amy', 'one/other/grace', 'two/org/amy', 'two/org/grace']);
  expect(order()).toMatchObject([{ organizationIds: ['org', 'unknown'] }]);
  await erase();
  await on.erased();
  expect(await left()).toEqual(['one/org/grace', 'one/other/grace', 'two/org/amy', 'two/org/grace']);
  expect(await on.values('SELECT user_id FROM document_members')).toEqual(['amy', 'grace', 'grace', 'grace']);
});

it('leaves users of other tenants who leave while it goes on', async () => {
  await addAmy();
  await addAmy('org', 'two');
  await erase();
  await on.delete({ organizationId: 'org', userIds: ['amy'] }, { apiKey: 'two' });
  await on.erased();
  const left = `SELECT api_key || '/' || name FROM users JOIN organizations ON id = organization WHERE user_id = 'amy'`;
  expect(await on.values(left)).toEqual(['two/Canary Amy']);
  expect(await on.values(`SELECT user_id FROM document_members WHERE user_id = 'amy'`)).toEqual(['amy']);
});

/** The user is a member of so many new organizations of a tenant. */
const addEverywhere = (apiKey: string, organizations: number) =>
  on.dataSource.query(
    `WITH o AS (
       INSERT INTO organizations (api_key, organization_id) SELECT $1, gen_random_uuid() FROM generate_series(1, $2::int) RETURNING id
     ), u AS (
       INSERT INTO users (organization, user_id, name, initial_generated) SELECT id, 'amy', 'Canary', true FROM o
     )
     INSERT INTO organization_members (organization, user_id) SELECT id, 'amy' FROM o`,
    [apiKey, organizations],
  );

it('erases the users of a tenant among any number of those of others', async () => {
  await addEverywhere('two', 6000);
  await addEverywhere('one', 250);
  await addEverywhere('two', 6);
  await addAmy();
  await erase({ userIds: ['grace', 'amy', 'amy-2'] });
  await on.erased();
  const left =
    'SELECT api_key FROM users JOIN organizations ON id = organization JOIN organization_members USING (organization, user_id)';
  expect(new Set(await on.values(left))).toEqual(new Set(['two']));
  expect(await on.values(left)).toHaveLength(6006);
  expect(await on.values(`SELECT user_id FROM users WHERE name IS NULL`)).toEqual([]);
});

it('hides the users of all organizations of a tenant and of no other, however many rows have their ids', async () => {
  for (const apiKey of ['one', 'two']) await addEverywhere(apiKey, 20);
  await addAmy();
  for (const [index, most] of [10, 100].entries()) {
    await on.dataSource.query(`UPDATE users SET name = 'Canary'`);
    const values = ['one', ['amy', 'nobody', 'grace'], null, 'users.erase', `key ${index}`, Buffer.alloc(1), null];
    const [begun] = await queryPrepared(on.dataSource, eraseEverywhere(most), values);
    expect(begun).toEqual({ known: true, too_many: false, pairs: 22 });
    const hidden = `SELECT DISTINCT api_key FROM users JOIN organizations ON id = organization WHERE user_id = 'amy' AND name IS NULL`;
    expect(await on.values(hidden)).toEqual(['one']);
    expect(await on.values(`SELECT user_id FROM users WHERE name IS NULL AND user_id = 'amy'`)).toHaveLength(21);
    expect(await on.values(`SELECT user_id FROM users WHERE name IS NULL AND user_id = 'grace'`)).toHaveLength(1);
  }
});

it('orders the erasure of a user who is not known: notifications may name it', async () => {
  await erase({ userIds: ['nobody', 'nobody'] });
  await on.erased();
  expect(order()).toMatchObject([{ userIds: ['nobody'] }]);
  expect(await refusal(erase({}, { apiKey: 'none' }))).toMatchObject({ status: 'UNAUTHENTICATED' });
});

it('keeps a user who is added again, with nothing of what was there before', async () => {
  await addAmy();
  await erase();
  await on.add({ organizationId: 'org', documentId: 'new', users: users('amy') });
  await on.erased();
  expect(await on.user('amy')).toEqual({ name: null, email: null, initial: null });
  expect(await on.documentMembers()).toEqual(['d/grace', 'new/amy']);
  const [{ version }] = order() as { version: number }[];
  const { memberships } = await on.listMemberships('amy');
  expect(memberships).toMatchObject([{ level: 'document', id: 'new' }]);
  expect((memberships[0] as { version: number }).version).toBeGreaterThan(version);
});

it.each([{ idempotencyKey: 'k' }, { messageId: 'm' }])(
  'a repetition with %j erases nobody who was added meanwhile',
  async (same) => {
    await addAmy();
    await erase({}, same);
    await on.erased();
    await addAmy();
    expect(await erase({}, same)).toEqual(ANSWER);
    await on.erased();
    expect(await on.user('amy')).toMatchObject({ name: 'Canary Amy' });
    expect(order()).toHaveLength(1);
    expect(await refusal(erase({ userIds: ['grace'] }, same))).toMatchObject({ status: 'FAILED_PRECONDITION' });
  },
);

it('needs an identity, and does nothing after its deadline', async () => {
  await addAmy();
  expect(await refusal(erase({}, { messageId: undefined }))).toMatchObject({ status: 'INVALID_ARGUMENT' });
  expect(await refusal(erase({}, { deadline: Date.now() - 1 }))).toMatchObject({ status: 'UNAVAILABLE' });
  expect(await on.user('amy')).toMatchObject({ name: 'Canary Amy' });
});

it('refuses users of more than 5000 organizations, and changes nothing', async () => {
  await on.dataSource.query(`
    WITH o AS (INSERT INTO organizations (api_key, organization_id) SELECT 'one', 'o' || n FROM generate_series(1, 5001) n RETURNING id)
    INSERT INTO users (organization, user_id, name, initial_generated) SELECT id, 'amy', 'Amy', true FROM o`);
  const refused = { status: 'INVALID_ARGUMENT', message: expect.stringContaining('organizationIds') as string };
  expect(await refusal(erase({}, { messageId: 'm' }))).toMatchObject(refused);
  expect(await on.values(`SELECT DISTINCT name FROM users`)).toEqual(['Amy']);
  expect(await on.values('SELECT user_ids FROM erasures')).toEqual([]);
  expect(await erase({ organizationIds: ['o7'] }, { messageId: 'm' })).toEqual(ANSWER);
});

it('waits for a call that holds the user, whose membership it ends or leaves as the versions say', async () => {
  await addAmy();
  await on.holding(`SELECT FROM users.users WHERE user_id = 'amy' FOR UPDATE`, async (rival) => {
    const calls: Promise<unknown>[] = [];
    // They get the row in this order.
    for (const call of [
      () => on.add({ organizationId: 'org', documentId: 'before', users: [AMY] }),
      () => erase(),
      () => on.add({ organizationId: 'org', documentId: 'after', users: users('amy') }),
    ]) {
      calls.push(call());
      await rival.waiting(calls.length);
    }
    await rival.query('COMMIT');
    await Promise.all(calls);
  });
  await on.erased();
  expect(await on.documentMembers()).toEqual(['after/amy', 'd/grace']);
  expect(await on.user('amy')).toMatchObject({ name: null });
});
