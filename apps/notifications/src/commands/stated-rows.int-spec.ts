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
import { aNotification, connectTestDatabase } from '../../test/notifications';

const existence = { requireTenant: () => Promise.resolve() } as unknown as Existence;
const members = { requireComplete: () => Promise.resolve() } as unknown as Members;
const outbox = { requireRoom: () => undefined, add: () => undefined } as unknown as OutboxRelay;
const TENANT = { organizationId: 'org', userId: 'reader' };

let database: Awaited<ReturnType<typeof connectTestDatabase>>;
let inbox: GetInboxHandler;
let update: UpdateNotificationsHandler;
let deletion: DeleteNotificationsHandler;

beforeAll(async () => {
  database = await connectTestDatabase();
  const [dataSource] = database.dataSources;
  inbox = new GetInboxHandler(members, new InboxRepository(dataSource));
  update = new UpdateNotificationsHandler(existence, members, new ReadingsRepository(dataSource), outbox);
  deletion = new DeleteNotificationsHandler(existence, new DeleteNotificationsRepository(dataSource), outbox);
});
afterAll(() => database.close());

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
  expect(await stated((context) => pages.get(reader, context))).toBeUndefined();
  await repository.insert([aNotification({ id: 'all', organizationId: 'asked', notifyAll: true, to: [] })]);
  expect(await stated((context) => pages.get(reader, context))).toBe(ROWS_OF_QUESTION);
  const read = { ...reader, pageSize: 0 };
  const looked = await stated((context) => inbox.get(read, context));
  expect(looked).toBeGreaterThan(0);
  expect(await stated((context) => inboxes.get(read, context))).toBe(ROWS_OF_QUESTION + looked!);
});
