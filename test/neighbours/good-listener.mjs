// Another service that listens to events. It reports the arrival of events of one tenant. A child process that runs as long as the system.
import { connect } from 'amqplib';

process.once('message', (/** @type {Parameters<typeof main>[0]} */ options) => void main(options));
process.on('disconnect', () => process.exit(1));

/** @param {{ url: string, queue: string, declare: boolean, apiKey: string }} options */
async function main({ url, queue, declare, apiKey }) {
  const model = await connect(url);
  const channel = await model.createChannel();
  if (declare) {
    await channel.assertQueue(queue, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
    await channel.bindQueue(queue, 'events', 'notification.added.v1');
  }
  await channel.prefetch(1000);
  await channel.consume(queue, (message) => {
    if (!message) return;
    channel.ack(message);
    // Parse only the events of this tenant, because others have hundreds of large ones.
    if (!message.content.includes(apiKey)) return;
    const { apikey, data } = JSON.parse(message.content.toString());
    if (apikey === apiKey) process.send?.({ organizationId: data.organizationId, id: data.notificationId });
  });
  process.send?.({ started: true });
}
