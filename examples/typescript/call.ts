// Calls operations and waits for the replies.
import { randomUUID } from 'node:crypto';
import { ApiError, CollaborationClient } from '@collaboration-backend/client';

const client = new CollaborationClient({
  url: process.env.BILLING_AMQP_URL ?? '',
  exchange: process.env.COMMANDS_EXCHANGE,
  name: 'billing',
  apiKey: 'demo-key',
  timeoutMs: 5000,
});

const { result } = await client.call('users.add.v1', {
  organizationId: 'acme',
  users: [{ userId: 'ada', name: 'Ada Lovelace' }],
});
console.log(result.message);

try {
  await client.call('users.add.v1', { organizationId: 'acme', users: [] });
} catch (error) {
  if (error instanceof ApiError) console.log(`${error.status}: ${error.message}`);
  else throw error;
}

const access = await client.call('access.check.v1', { organizationId: 'acme', documentId: 'plan', userId: 'ada' });
console.log(access.result.allowed, access.result.level);

// From adding a notification to the erasure of the person.
const organizationId = 'acme';
const id = randomUUID();
// A person for this run alone: an erasure goes on after its answer.
const userId = `reader ${id}`;
await client.call('users.add.v1', { organizationId, users: [{ userId }] });
const found = await client.call('users.get.v1', { organizationId, userIds: [userId] });
console.log(found.result.data.length);
const set = await client.call('documents.set.v1', { organizationId, documentId: 'call', access: 'organizationPrivate' });
console.log(set.result.message);
await client.call('notifications.add.v1', {
  organizationId,
  documentId: 'call',
  notificationId: id,
  actionUser: { userId: 'grace' },
  displayHeadlineMessageTemplate: 'The plan is ready',
  notifyUsers: [{ userId }],
});
const inbox = await client.call('notifications.inbox.v1', { organizationId, userId, pageSize: 0 });
console.log(inbox.result.unread.count);
await client.call('notifications.update.v1', { organizationId, userId, readUpTo: inbox.result.asOf });
const deleted = await client.call('notifications.delete.v1', { organizationId, notificationIds: [id] });
console.log(deleted.result.data[id]?.message);
const removed = await client.call('users.delete.v1', { organizationId, userIds: [userId] });
console.log(removed.result.data[userId]?.message);
console.log((await client.call('users.erase.v1', { userIds: [userId] })).result.message);
await client.close();
