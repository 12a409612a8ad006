// Prints added users, until Ctrl-C.
import amqp from 'amqplib';

const url = process.env.BILLING_AMQP_URL;
const connection = await amqp.connect(url);
// amqplib takes it for no error when the broker stops: without this the program would end with exit code 0.
connection.on('close', () => {
  console.error('The connection is lost.');
  process.exit(1);
});
const channel = await connection.createChannel();

// The queue was declared and bound with the account. It keeps 100,000 events while this program is down; then the oldest become dead letters.
await channel.prefetch(20);
await channel.consume('billing.events', (message) => {
  if (!message) throw new Error('The queue was deleted.');
  const event = JSON.parse(message.content.toString());
  console.log(event.type, event.id, event.data.organizationId, event.data.users.map(({ userId }) => userId).join());
  channel.ack(message); // after the work, so that unfinished work is delivered again
});
console.log('listening');
