import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { AccessRepository } from '../db/access.repository';
import { users, UsersOnDatabase } from '../../test/users';
import { GetUsersHandler } from './get-users.handler';
import { ListContactsHandler } from './list-contacts.handler';

let on: UsersOnDatabase;
beforeAll(async () => {
  on = await UsersOnDatabase.start();
});
afterAll(() => on.stop());

/** The rows that a handler states. */
async function stated(run: (context: DeliveryContext) => Promise<unknown>): Promise<number | undefined> {
  const context = new DeliveryContext({
    ...{ apiKey: 'one', pattern: 'any', requestId: 'r', awaited: true, redelivered: false, attempt: 1 },
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
