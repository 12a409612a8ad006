import { OutboxFull, OutboxRelay } from '@app/postgres/outbox/outbox';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { eventually } from '@app/testing/eventually';
import { DeleteNotificationsRepository } from '../db/delete-notifications.repository';
import { InsertNotificationsRepository } from '../db/insert-notifications.repository';
import { takeEvents } from '../db/outbox.repository';
import { ReadingsRepository } from '../db/readings.repository';
import type { Existence } from '../users-service/existence';
import type { Members } from '../users-service/members';
import { NotificationWriter } from '../writer/notification-writer';
import { AddNotificationHandler } from './add-notification.handler';
import { DeleteNotificationsHandler } from './delete-notifications.handler';
import { UpdateNotificationsHandler } from './update-notifications.handler';
import { aNotification, testDatabase } from '../../test/notifications';

const existence = { requireTenant: () => Promise.resolve() } as unknown as Existence;
const members = { requireComplete: () => Promise.resolve() } as unknown as Members;
const refuse = () => Promise.reject(new Error('the broker takes nothing'));
const CONTENT = { documentId: 'doc', actionUser: { userId: 'a' }, displayHeadlineMessageTemplate: 'Hello' };

let inserts: InsertNotificationsRepository;
let outbox: OutboxRelay;
// Before the end of its database.
afterAll(() => outbox?.stop());
const database = testDatabase();

beforeAll(async () => {
  const [dataSource] = database.dataSources;
  inserts = new InsertNotificationsRepository(dataSource);
  // Its event makes the outbox full.
  await inserts.insert([aNotification({ id: 'n', to: ['reader'] })]);
  outbox = new OutboxRelay(dataSource, { take: takeEvents, publish: refuse, fromMemory: true, maxEvents: 1 });
  outbox.start();
  await eventually(() => outbox.check() !== undefined);
});

const context = () =>
  new DeliveryContext({
    ...{ apiKey: 'tenant', pattern: 'any', requestId: 'r', messageId: 'm' },
    ...{ awaited: true, redelivered: false, attempt: 1 },
  });

it.each([
  [
    'notifications/add',
    () =>
      new AddNotificationHandler(existence, new NotificationWriter(inserts, outbox)).add(
        { organizationId: 'org', ...CONTENT },
        context(),
      ),
  ],
  [
    'notifications/delete',
    () => {
      const deletes = new DeleteNotificationsRepository(database.dataSources[0]);
      return new DeleteNotificationsHandler(existence, deletes, outbox).delete(
        { organizationId: 'org', documentId: 'doc' },
        context(),
      );
    },
  ],
  [
    'notifications/update',
    () => {
      const readings = new ReadingsRepository(database.dataSources[0]);
      const notifications = [{ id: 'n', readByUserIds: ['reader'] }];
      return new UpdateNotificationsHandler(existence, members, readings, outbox).update(
        { organizationId: 'org', notifications },
        context(),
      );
    },
  ],
])('%s waits while the outbox is full, and changes nothing', async (_, call) => {
  await expect(call()).rejects.toThrow(OutboxFull);
  const rows = (table: string) => database.dataSources[0].query<object[]>(`SELECT FROM ${table}`);
  const tables = ['notifications', 'recipients', 'readings', 'deletions', 'outbox'];
  expect((await Promise.all(tables.map(rows))).map(({ length }) => length)).toEqual([1, 1, 0, 0, 1]);
});
