// Publishes commands without a reply, as an internal service would: confirmed, persistent. Started by rows/publish.mjs.
//   node bench/publisher.mjs '{"count": …}'   AMQP_URL in the environment. Ends with 0 when all are confirmed.
import { randomUUID } from 'node:crypto';
import amqp from 'amqplib';
import { notification } from './workloads.mjs';

const AT_ONCE = 500;
const POOL = 256;

const { count } = JSON.parse(process.argv[2]);
const bodies = Array.from({ length: POOL }, (_, number) => Buffer.from(JSON.stringify(notification(number, 2))));
const connection = await amqp.connect(process.env.AMQP_URL ?? '', { noDelay: true });
const channel = await connection.createConfirmChannel();
channel.on('return', () => {
  throw new Error('no queue takes the command');
});
for (let number = 0; number < count; number++) {
  channel.publish('commands', 'notifications.add.v1', bodies[number % POOL], {
    persistent: true,
    mandatory: true,
    contentType: 'application/json',
    messageId: randomUUID(),
    headers: { 'x-api-key': 'demo-key' },
  });
  if ((number + 1) % AT_ONCE === 0) await channel.waitForConfirms();
}
await channel.waitForConfirms();
await connection.close();
