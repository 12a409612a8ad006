import { AddNotificationRequest } from '@app/contracts/notifications.add';
import type { OutboxRelay } from '@app/postgres/outbox/outbox';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { testDatabase } from '../../test/notifications';
import { InsertNotificationsRepository } from '../db/insert-notifications.repository';
import type { Existence } from '../users-service/existence';
import { NotificationWriter } from '../writer/notification-writer';
import { AddNotificationHandler } from './add-notification.handler';

describe(AddNotificationHandler.name, () => {
  const require = jest.fn(() => Promise.resolve());
  const existence = { requireTenant: () => Promise.resolve(), require } as unknown as Existence;
  const outbox = { requireRoom: () => undefined, add: () => undefined } as unknown as OutboxRelay;
  const database = testDatabase();
  let handler: AddNotificationHandler;
  const look = jest.spyOn(InsertNotificationsRepository.prototype, 'findStored');

  beforeAll(async () => {
    const repository = new InsertNotificationsRepository(database.dataSources[0]);
    handler = new AddNotificationHandler(existence, new NotificationWriter(repository, outbox));
  });
  beforeEach(() => jest.clearAllMocks());

  let messages = 0;
  const add = (idempotencyKey?: string, more: Partial<AddNotificationRequest> = {}) =>
    handler.add(
      Object.assign(new AddNotificationRequest(), {
        ...{ organizationId: 'org', documentId: 'doc', actionUser: { userId: 'a' }, displayHeadlineMessageTemplate: 'Hello' },
        ...more,
      }),
      new DeliveryContext({
        ...{ apiKey: 'tenant', pattern: 'any', requestId: 'r', messageId: `m${++messages}`, idempotencyKey },
        ...{ awaited: true, redelivered: false, attempt: 1 },
      }),
    );

  it('looks for an answer to the Idempotency-Key before only where existence is checked', async () => {
    await add('k1');
    expect([look.mock.calls.length, require.mock.calls.length]).toEqual([0, 0]);
    const first = await add('k2', { createDocument: false });
    expect([look.mock.calls.length, require.mock.calls.length]).toEqual([1, 1]);
    expect(await add('k2', { createDocument: false })).toEqual(first);
    expect(require).toHaveBeenCalledTimes(1);
    await add(undefined, { createOrganization: false });
    expect(require.mock.calls.at(-1)).toMatchObject([{ organizationId: 'org', organization: true, document: false }, {}]);
  });

  it('is for all without users, and for these with some, unless it says so', async () => {
    const notifyUsers = [{ userId: 'reader' }];
    await add(undefined, { notificationId: 'nobody named' });
    await add(undefined, { notificationId: 'one named', notifyUsers });
    await add(undefined, { notificationId: 'all said', notifyUsers, notifyAll: true });
    await add(undefined, { notificationId: 'nobody said', notifyAll: false });
    const rows = await database.dataSources[0].query<{ id: string }[]>(
      `SELECT id FROM notifications WHERE notify_all AND id LIKE '% %' ORDER BY id`,
    );
    expect(rows.map(({ id }) => id)).toEqual(['all said', 'nobody named']);
  });

  it('is the same one again, whatever may be created for it', async () => {
    const answers = [];
    for (const createDocument of [undefined, false, true])
      answers.push(await add(undefined, { notificationId: 'same', createDocument }));
    expect(answers).toEqual(Array(3).fill(answers[0]));
  });
});
