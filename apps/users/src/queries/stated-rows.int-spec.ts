import type { ErasureLoop } from '@app/postgres/retention/erasure-loop';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { EraseUsersHandler } from '../commands/erase-users.handler';
import { AccessRepository } from '../db/access.repository';
import { ErasuresRepository } from '../db/erasures.repository';
import { IdempotencyKeysRepository } from '../db/idempotency-keys.repository';
import { refusal, users, usersOnDatabase } from '../../test/users';
import { GetUsersHandler } from './get-users.handler';
import { ListContactsHandler } from './list-contacts.handler';

const on = usersOnDatabase();

/** The rows that a handler states. */
async function stated(run: (context: DeliveryContext) => Promise<unknown>, messageId = 'm'): Promise<number | undefined> {
  const context = new DeliveryContext({
    ...{ apiKey: 'one', pattern: 'any', requestId: 'r', messageId, awaited: true, redelivered: false, attempt: 1 },
  });
  await run(context);
  return context.rows;
}

it('states the members and the ids that were looked at, also those of users who have left', async () => {
  const access = new AccessRepository(on.dataSource);
  const get = (request: object) =>
    stated((context) => new GetUsersHandler(access).getUsers({ organizationId: 'org', ...request }, context));
  const contacts = (request: object) =>
    stated((context) => new ListContactsHandler(access).listContacts({ organizationId: 'org', ...request }, context));
  const left = Array.from({ length: 90 }, (_, number) => `left ${100 + number}`);
  await on.add({ organizationId: 'org', users: users('a', 'b', ...left, 'z', 'zz') });
  await on.delete({ organizationId: 'org', userIds: [...left, 'zz'] });
  expect(await get({ pageSize: 1 })).toBe(2);
  expect(await get({ pageSize: 2 })).toBe(93);
  // The last one has left, too.
  expect(await get({})).toBe(94);
  expect(await contacts({})).toBe(94);
  expect(await get({ documentId: 'none' })).toBe(0);
  expect(await get({ userIds: ['a', 'left 100', 'nobody'] })).toBe(3 + 2);
  expect(await on.getUsers({ organizationId: 'org', pageSize: 3 })).not.toHaveProperty('pageToken');
});

it('states the rows of users that an erasure hides, or the organizations in which it looks for them', async () => {
  const loop = { wake: () => undefined } as unknown as ErasureLoop;
  const { dataSource, outbox } = on;
  const handler = new EraseUsersHandler(
    new ErasuresRepository(dataSource),
    new IdempotencyKeysRepository(dataSource),
    outbox,
    loop,
  );
  for (const organizationId of ['o1', 'o2', 'o3']) await on.add({ organizationId, users: users('amy', 'bob') });
  const erase = (request: object, messageId: string) =>
    stated((context) => handler.eraseUsers({ userIds: ['amy', 'bob', 'nobody'], ...request }, context), messageId);
  expect(await erase({}, 'everywhere')).toBe(6);
  expect(await erase({}, 'everywhere')).toBe(3);
  expect(await erase({ organizationIds: ['o1', 'x', 'y'] }, 'in organizations')).toBe(9);
  await dataSource.query(`
    WITH o AS (INSERT INTO organizations (api_key, organization_id) SELECT 'one', 'many ' || n FROM generate_series(1, 5001) n RETURNING id)
    INSERT INTO users (organization, user_id, initial_generated) SELECT id, 'amy', true FROM o`);
  const refused = async (context: DeliveryContext) =>
    expect(await refusal(handler.eraseUsers({ userIds: ['amy', 'bob'] }, context))).toMatchObject({ status: 'INVALID_ARGUMENT' });
  expect(await stated(refused, 'too many')).toBe(2);
});
