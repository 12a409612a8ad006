// Publishes a command without waiting for its result: exit code 0 means that the broker has it.
import amqp from 'amqplib';

const url = process.env.BILLING_AMQP_URL;
const exchange = process.env.COMMANDS_EXCHANGE ?? 'commands';
const connection = await amqp.connect(url, { noDelay: true });
const channel = await connection.createConfirmChannel();
channel.on('return', () => {
  throw new Error('No queue is bound: the system is not set up.');
});

const notification = {
  organizationId: 'acme',
  documentId: 'plan',
  notificationId: 'node-invoice-7', // a repetition with this id has no second effect
  actionUser: { userId: 'billing' },
  displayHeadlineMessageTemplate: 'Invoice 7 is paid',
  notifyUsers: [{ userId: 'ada' }],
};
channel.publish(exchange, 'notifications.add.v1', Buffer.from(JSON.stringify(notification)), {
  persistent: true,
  mandatory: true,
  contentType: 'application/json',
  userId: decodeURIComponent(new URL(url).username), // your account; the broker checks it
  headers: { 'x-api-key': 'demo-key' },
});
await channel.waitForConfirms();
console.log('published');
await connection.close();
