// Prints the users that are added, until Ctrl-C.
import amqp from 'amqplib';

const url = process.env.BILLING_AMQP_URL;
const connection = await amqp.connect(url);
const channel = await connection.createChannel();

// Declared and bound when the account was made. It keeps what is told while this program is down: 100,000 events, then the oldest go.
await channel.prefetch(20);
await channel.consume('billing.events', (message) => {
  if (!message) throw new Error('The queue was deleted.');
  const event = JSON.parse(message.content.toString());
  console.log(event.type, event.id, event.data.organizationId, event.data.users.map(({ userId }) => userId).join());
  channel.ack(message); // after the work, so that it comes again when the work was not done
});
console.log('listening');
