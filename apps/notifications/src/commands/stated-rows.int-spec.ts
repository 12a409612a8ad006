import type { OutboxRelay } from '@app/postgres/outbox/outbox';
import type { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { DeleteNotificationsRepository } from '../db/delete-notifications.repository';
import { InboxRepository } from '../db/inbox.repository';
import { InsertNotificationsRepository } from '../db/insert-notifications.repository';
import { MembersRepository } from '../db/members.repository';
import { PagesRepository } from '../db/pages.repository';
import { ReadingsRepository } from '../db/readings.repository';
import { GetInboxHandler } from '../queries/get-inbox.handler';
import type { Existence } from '../users-service/existence';
import { GetNotificationsHandler } from '../queries/get-notifications.handler';
import { Members, ROWS_OF_QUESTION } from '../users-service/members';
import { DeleteNotificationsHandler } from './delete-notifications.handler';
import { UpdateNotificationsHandler } from './update-notifications.handler';
import { aNotification, testDatabase } from '../../test/notifications';

const existence = { requireTenant: () => Promise.resolve() } as unknown as Existence;
const members = { requireComplete: () => Promise.resolve() } as unknown as Members;
const outbox = { requireRoom: () => undefined, add: () => undefined } as unknown as OutboxRelay;
const TENANT = { organizationId: 'org', userId: 'reader' };

const database = testDatabase();
let inbox: GetInboxHandler;
let update: UpdateNotificationsHandler;
let deletion: DeleteNotificationsHandler;

beforeAll(async () => {
  const [dataSource] = database.dataSources;
  inbox = new GetInboxHandler(members, new InboxRepository(dataSource));
  update = new UpdateNotificationsHandler(existence, members, new ReadingsRepository(dataSource), outbox);
  deletion = new DeleteNotificationsHandler(existence, new DeleteNotificationsRepository(dataSource), outbox);
});

let messages = 0;
const aContext = () =>
  new DeliveryContext({
    ...{ apiKey: 'tenant', pattern: 'any', requestId: 'r', messageId: `m${++messages}` },
    ...{ awaited: true, redelivered: false, attempt: 1 },
  });

/** The rows that a handler states. */
async function stated(run: (context: DeliveryContext) => Promise<unknown>): Promise<number | undefined> {
  const context = aContext();
  await run(context);
  return context.rows;
}

/** Notifications to this number of users each, of whom `reader` is one. */
async function store(count: number, recipients: number, documentId = 'doc'): Promise<void> {
  const to = ['reader', ...Array.from({ length: recipients - 1 }, (_, number) => `user ${number}`)];
  const ids = Array.from({ length: count }, (_, number) => `${documentId} ${1000 + number}`);
  const repository = new InsertNotificationsRepository(database.dataSources[0]);
  await repository.insert(ids.map((id) => aNotification({ id, documentId, to })));
}

it('states the rows that were looked at or changed', async () => {
  await store(90, 1);
  // All of them are too young for the mark of a call, whatever the clock says.
  const soon = Date.now() + 60_000;
  await database.dataSources[0].query('UPDATE notifications SET "timestamp" = $1', [soon]);
  await database.dataSources[0].query('UPDATE recipients SET "timestamp" = $1', [soon]);
  const count = (context: DeliveryContext) => inbox.get({ ...TENANT, pageSize: 0 }, context);
  expect(await stated(count)).toBe(90);
  expect(await stated((context) => inbox.get({ ...TENANT, pageSize: 50 }, context))).toBe(90 + 51);

  const past = soon - 120_000;
  await database.dataSources[0].query('UPDATE notifications SET "timestamp" = $1', [past]);
  await database.dataSources[0].query('UPDATE recipients SET "timestamp" = $1', [past]);
  const pairs = ['doc 1000', 'doc 1001'].map((id) => ({ id, readByUserIds: ['reader'] }));
  await update.update({ organizationId: 'org', notifications: pairs }, aContext());
  // The marks of the two have no effect any more, and are deleted.
  expect(await stated((context) => update.update({ ...TENANT, readUpTo: Date.now() }, context))).toBe(2);
  expect(await stated(count)).toBe(0);

  await store(12, 1000, 'many');
  const remove = (documentId: string) => stated((context) => deletion.delete({ organizationId: 'org', documentId }, context));
  expect(await remove('doc')).toBe(90 + 90);
  expect(await remove('many')).toBe(10 + 10_000);
  expect(await remove('many')).toBe(2 + 2000);
});

it('states the documents of a user that an inbox has looked into, and the ids of a page', async () => {
  const [dataSource] = database.dataSources;
  const memberships = new MembersRepository(dataSource);
  const member = { organizationId: 'many documents', userId: 'reader' };
  await new InsertNotificationsRepository(dataSource).insert([aNotification({ id: 'a', ...member, documentId: 'd', to: ['x'] })]);
  for (let number = 0; number < 40; number++)
    await memberships.add('tenant', member.organizationId, { level: 'document', id: `d${number}` }, [
      { userId: 'reader', version: 1 },
    ]);
  const pages = new GetNotificationsHandler(members, new PagesRepository(dataSource));
  const get = (more: object) => stated((context) => pages.get({ ...member, ...more }, context));
  const ids = ['a', 'b', 'c'];
  // A count of the documents would take a page a tenth more of the time of the database.
  expect(await get({ notificationIds: ids })).toBe(3);
  expect(await get({ userId: undefined, documentId: 'd', notificationIds: ids })).toBe(3);
  // Once for the count, and once for the page.
  expect(await stated((context) => inbox.get({ ...member, pageSize: 0 }, context))).toBe(40);
  expect(await stated((context) => inbox.get({ ...member, pageSize: 10 }, context))).toBe(40 + 40);
  // Looking into eight documents costs as much as changing a row, and so does what a question has looked at.
  const readUpTo = (context: DeliveryContext) => update.update({ ...member, readUpTo: Date.now() }, context);
  expect(await stated(readUpTo)).toBe(5);
  const afterQuestion = (context: DeliveryContext) => readUpTo(Object.assign(context, { rows: ROWS_OF_QUESTION }));
  expect(await stated(afterQuestion)).toBe(5 + ROWS_OF_QUESTION / 8);
});

it.each([
  ['a guest', 'folder', 'f', 41],
  ['a member of the organization', 'organization', '', 1],
] as const)('looks into no document that the organization sees: %s', async (organizationId, level, id, expected) => {
  const memberships = new MembersRepository(database.dataSources[0]);
  const set = (documentId: string, access: string, folderId?: string) =>
    memberships.setDocument('tenant', organizationId, { documentId, access, folderId, version: 1 });
  for (let number = 0; number < 20; number++) {
    await set(`public ${number}`, 'public');
    await set(`in folder ${number}`, 'organizationPrivate', 'f');
  }
  await set('restricted', 'restricted', 'f');
  for (const one of [{ level: 'folder', id: 'f' } as const, { level, id }])
    await memberships.add('tenant', organizationId, one, [{ userId: 'reader', version: 1 }]);
  const count = (context: DeliveryContext) => inbox.get({ organizationId, userId: 'reader', pageSize: 0 }, context);
  expect(await stated(count)).toBe(expected);
});

it('states a question of a mark as documents also when the users service is away', async () => {
  const [dataSource] = database.dataSources;
  const member = { organizationId: 'marked', userId: 'reader' };
  await new InsertNotificationsRepository(dataSource).insert([
    aNotification({ organizationId: 'marked', notifyAll: true, to: [] }),
  ]);
  const call = () => Promise.reject(new Error('away'));
  const away = { whenReady: () => Promise.resolve(false), call } as unknown as RabbitClient;
  const asking = new Members(new MembersRepository(dataSource), away);
  const repository = new ReadingsRepository(dataSource);
  const mark = (context: DeliveryContext) =>
    new UpdateNotificationsHandler(existence, asking, repository, outbox).update({ ...member, readUpTo: Date.now() }, context);
  const refused = (context: DeliveryContext) => expect(mark(context)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  expect(await stated(refused)).toBe(ROWS_OF_QUESTION / 8);
});

it('states the notifications that a count of unread ones looks through before the last of them', async () => {
  const [dataSource] = database.dataSources;
  const member = { organizationId: 'counted', userId: 'reader' };
  const insert = (count: number, more: Parameters<typeof aNotification>[0]) => {
    const all = Array.from({ length: count }, (_, number) =>
      aNotification({ organizationId: 'counted', id: `${more?.documentId} ${number}`, ...more }),
    );
    return new InsertNotificationsRepository(dataSource).insert(all);
  };
  await new MembersRepository(dataSource).add('tenant', 'counted', { level: 'organization', id: '' }, [
    { userId: 'reader', version: 1 },
  ]);
  await insert(60, { documentId: 'named' });
  await insert(150, { documentId: 'to all', notifyAll: true, to: [] });
  // The sixty that name the user are looked through, and 101 - 60 more.
  expect(await stated((context) => inbox.get({ ...member, pageSize: 0 }, context))).toBe(101);
  const read = Array.from({ length: 60 }, (_, number) => ({ id: `named ${number}`, readByUserIds: ['reader'] }));
  await update.update({ organizationId: 'counted', notifications: read }, aContext());
  expect(await stated((context) => inbox.get({ ...member, pageSize: 0 }, context))).toBe(60 + 101);
});

it('states a question to the users service, which the first read of a user costs, in addition', async () => {
  const [dataSource] = database.dataSources;
  /** Answers that the user was never added. */
  const users = {
    whenReady: () => Promise.resolve(true),
    call: () => Promise.resolve({ parse: () => ({ memberships: [], more: false }) }),
  };
  const asking = new Members(new MembersRepository(dataSource), users as unknown as RabbitClient);
  const pages = new GetNotificationsHandler(asking, new PagesRepository(dataSource));
  const inboxes = new GetInboxHandler(asking, new InboxRepository(dataSource));
  const repository = new InsertNotificationsRepository(dataSource);
  const reader = { organizationId: 'asked', userId: 'reader' };
  await repository.insert([aNotification({ id: 'named', organizationId: 'asked' })]);
  expect(await stated((context) => pages.get(reader, context))).toBe(0);
  await repository.insert([aNotification({ id: 'all', organizationId: 'asked', notifyAll: true, to: [] })]);
  expect(await stated((context) => pages.get(reader, context))).toBe(ROWS_OF_QUESTION);
  const read = { ...reader, pageSize: 0 };
  const looked = await stated((context) => inbox.get(read, context));
  expect(looked).toBeGreaterThan(0);
  expect(await stated((context) => inboxes.get(read, context))).toBe(ROWS_OF_QUESTION + looked!);
});
