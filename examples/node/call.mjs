// Calls an operation and waits for the reply in its own queue.
import { randomUUID } from 'node:crypto';
import amqp from 'amqplib';

const TIMEOUT_MS = 5000;
const url = process.env.BILLING_AMQP_URL;
const exchange = process.env.COMMANDS_EXCHANGE ?? 'commands';
const connection = await amqp.connect(url, { noDelay: true });
const channel = await connection.createConfirmChannel();

// The broker names the queue and deletes it with the connection.
const { queue } = await channel.assertQueue('', { exclusive: true, autoDelete: true, durable: false });
await channel.bindQueue(queue, 'replies', queue);
const waiting = new Map();
await channel.consume(queue, (reply) => waiting.get(reply?.properties.correlationId)?.resolve(reply), { noAck: true });
channel.on('return', ({ properties }) => {
  waiting.get(properties.correlationId)?.reject(new Error('UNAVAILABLE: no queue is bound, and nothing was done'));
});

async function call(operation, body) {
  const correlationId = randomUUID();
  const reply = new Promise((resolve, reject) => {
    waiting.set(correlationId, { resolve, reject });
    setTimeout(() => reject(new Error('DEADLINE_EXCEEDED: the outcome is unknown')), TIMEOUT_MS).unref();
  });
  channel.publish(exchange, operation, Buffer.from(JSON.stringify(body)), {
    persistent: true,
    mandatory: true,
    contentType: 'application/json',
    messageId: randomUUID(), // use the same id when you repeat the call
    correlationId,
    replyTo: queue,
    expiration: TIMEOUT_MS,
    userId: decodeURIComponent(new URL(url).username),
    headers: { 'x-api-key': 'demo-key', 'x-deadline': Date.now() + TIMEOUT_MS },
  });
  const { properties, content } = await reply.finally(() => waiting.delete(correlationId));
  const result = JSON.parse(content.toString());
  if (properties.headers['x-status'] === 'OK') return result;
  throw new Error(`${result.status}: ${result.message}`);
}

const { message } = await call('users.add.v1', { organizationId: 'acme', users: [{ userId: 'ada', name: 'Ada Lovelace' }] });
console.log(message);
await call('users.add.v1', { organizationId: 'acme', users: [] }).catch((error) => console.log(error.message));

// From adding a notification to the erasure of the person.
const organizationId = 'acme';
const id = randomUUID();
// A person for this run alone: an erasure goes on after its answer.
const userId = `reader ${id}`;
await call('users.add.v1', { organizationId, users: [{ userId }] });
const found = await call('users.get.v1', { organizationId, userIds: [userId] });
console.log(found.data.length);
console.log((await call('documents.set.v1', { organizationId, documentId: 'call', access: 'organizationPrivate' })).message);
await call('notifications.add.v1', {
  organizationId,
  documentId: 'call',
  notificationId: id,
  actionUser: { userId: 'grace' },
  displayHeadlineMessageTemplate: 'The plan is ready',
  notifyUsers: [{ userId }],
});
const { unread, asOf } = await call('notifications.inbox.v1', { organizationId, userId, pageSize: 0 });
console.log(unread.count);
await call('notifications.update.v1', { organizationId, userId, readUpTo: asOf });
const deleted = await call('notifications.delete.v1', { organizationId, notificationIds: [id] });
console.log(deleted.data[id].message);
const removed = await call('users.delete.v1', { organizationId, userIds: [userId] });
console.log(removed.data[userId].message);
console.log((await call('users.erase.v1', { userIds: [userId] })).message);
await connection.close();
