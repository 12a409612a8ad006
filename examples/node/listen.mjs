// Prints the users that are added, until Ctrl-C.
import amqp from 'amqplib';

const url = process.env.BILLING_AMQP_URL;
const connection = await amqp.connect(url);
const channel = await connection.createChannel();

// Durable, so that nothing is missed while this program is down. Full, it drops its oldest: one that refused would hold up everybody.
const queue = 'billing.node';
await channel.assertQueue(queue, {
  durable: true,
  arguments: { 'x-queue-type': 'quorum', 'x-max-length': 100_000, 'x-overflow': 'drop-head' },
});
await channel.bindQueue(queue, 'events', 'user.added.v1');
await channel.prefetch(20);
await channel.consume(queue, (message) => {
  if (!message) throw new Error('The queue was deleted.');
  const event = JSON.parse(message.content.toString());
  console.log(event.type, event.id, event.data.organizationId, event.data.users.map(({ userId }) => userId).join());
  channel.ack(message); // after the work, so that it comes again when the work was not done
});
console.log('listening');
