import { Logger } from '@nestjs/common';
import type { MessageHandler } from '@nestjs/microservices';
import type { ConsumeMessage } from 'amqplib';
import type { QueryRunner } from 'typeorm';
import { DeleteNotifications } from '@app/contracts/notifications.delete';
import { UpdateNotifications } from '@app/contracts/notifications.update';
import { isDatabaseAway, isTimeout, isTransient } from '@app/postgres/errors';
import type { OutboxRelay } from '@app/postgres/outbox/outbox';
import { Delivery, type Acks } from '@app/rabbitmq/delivery/delivery';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { HandlerRunner } from '@app/rabbitmq/server/handler-runner';
import { DeleteNotificationsRepository } from '../db/delete-notifications.repository';
import { InsertNotificationsRepository } from '../db/insert-notifications.repository';
import { ReadingsRepository } from '../db/readings.repository';
import type { Existence } from '../users-service/existence';
import type { Members } from '../users-service/members';
import { DeleteNotificationsHandler } from './delete-notifications.handler';
import { UpdateNotificationsHandler } from './update-notifications.handler';
import { aNotification, connectTestDatabase } from '../../test/notifications';

const existence = { requireTenant: () => Promise.resolve() } as unknown as Existence;
const members = { requireComplete: () => Promise.resolve() } as unknown as Members;
const outbox = { requireRoom: () => undefined, add: () => undefined } as unknown as OutboxRelay;

/** A deadline that is this near leaves a statement 400 ms. */
const NEAR_MS = 1900;

const QUEUE = { name: 'notifications.calls', kind: 'commands', exchange: 'calls', prefetch: 32 } as const;
const FIRST = { apiKey: 'tenant', requestId: 'r', awaited: true, redelivered: false, attempt: 1 };

function aDelivery(pattern: string, request: object, more: { messageId?: string; deadline?: number } = {}): Delivery {
  const message = { content: Buffer.from(JSON.stringify(request)), fields: {}, properties: {} } as ConsumeMessage;
  return new Delivery(QUEUE, message, { context: new DeliveryContext({ ...FIRST, pattern, ...more }) }, {} as Acks);
}

let database: Awaited<ReturnType<typeof connectTestDatabase>>;
let runner: HandlerRunner;
let blocking: QueryRunner;

beforeAll(async () => {
  Logger.overrideLogger(false);
  database = await connectTestDatabase();
  const [dataSource] = database.dataSources;
  const update = new UpdateNotificationsHandler(existence, members, new ReadingsRepository(dataSource), outbox);
  const deletion = new DeleteNotificationsHandler(existence, new DeleteNotificationsRepository(dataSource), outbox);
  const handlers = new Map<string, MessageHandler>([
    [UpdateNotifications.pattern, update.update.bind(update) as MessageHandler],
    [DeleteNotifications.pattern, deletion.delete.bind(deletion) as MessageHandler],
  ]);
  runner = new HandlerRunner(handlers, { isUnavailable: isDatabaseAway, isTransient, isTimeout });
  await new InsertNotificationsRepository(dataSource).insert([aNotification({ id: 'a', to: ['reader'] })]);
  blocking = dataSource.createQueryRunner();
});
afterAll(async () => {
  await blocking.release();
  await database.close();
});

it.each([
  [UpdateNotifications.pattern, 'readings', { organizationId: 'org', notifications: [{ id: 'a', readByUserIds: ['reader'] }] }],
  [UpdateNotifications.pattern, 'read_marks', { organizationId: 'org', userId: 'reader', readUpTo: 1 }],
  [DeleteNotifications.pattern, 'notifications', { organizationId: 'org', notificationIds: ['a'] }],
])('%s says how long it has run when it was cancelled at the lock of %s', async (pattern, table, request) => {
  await blocking.startTransaction();
  await blocking.query(`LOCK ${table}`);
  const delivery = aDelivery(pattern, request, { messageId: `of ${table}`, deadline: Date.now() + NEAR_MS });
  try {
    expect(await runner.outcomeOf(delivery)).toMatchObject({ kind: 'failed', error: { status: 'UNAVAILABLE' } });
  } finally {
    await blocking.rollbackTransaction();
  }
  expect(delivery.cancelledAfterMs).toBeGreaterThan(0);
});

it('says nothing of the kind about a command that fails for another reason', async () => {
  const delivery = aDelivery(DeleteNotifications.pattern, { organizationId: 'org' });
  expect(await runner.outcomeOf(delivery)).toMatchObject({ kind: 'failed', error: { status: 'INVALID_ARGUMENT' } });
  expect(delivery.cancelledAfterMs).toBeUndefined();
});
