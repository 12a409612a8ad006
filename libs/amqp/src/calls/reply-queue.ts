import type { Channel, Message } from 'amqplib';
import { closeQuietly } from '../connection/opened-channel';

const ASK_EVERY_MS = 1000;

/**
 * Declares a queue for the replies to one channel, and consumes it. When the broker cancels the consumer, the channel is closed.
 *
 * @returns its name, which the broker chooses: an exclusive queue with a fixed name stays locked while the previous connection is half open
 */
export async function openReplyQueue(channel: Channel, onReply: (reply: Message) => void): Promise<string> {
  const { queue } = await channel.assertQueue('', {
    exclusive: true,
    autoDelete: true,
    durable: false,
    arguments: { 'x-queue-type': 'classic' },
  });
  await channel.bindQueue(queue, 'replies', queue);
  await channel.consume(queue, (reply) => (reply ? onReply(reply) : closeQuietly(channel)), { noAck: true });
  watchQueue(channel, queue);
  return queue;
}

/**
 * Asks once a second whether an exclusive queue still exists. When it does not, the broker closes the channel.
 *
 * With Khepri before RabbitMQ 4.2, a node that was frozen or cut off deletes the exclusive queues of other nodes from the metadata when it is back. Their
 * consumers are not cancelled, and no message arrives any more (rabbitmq-server, issue 12949).
 */
export function watchQueue(channel: Channel, queue: string): void {
  let isAsking = false;
  const ask = async () => {
    isAsking = true;
    await channel.checkQueue(queue);
    isAsking = false;
  };
  // The loss of the channel says everything about a failure. Until then there is no further question.
  const timer = setInterval(() => void (isAsking || ask().catch(() => undefined)), ASK_EVERY_MS).unref();
  channel.once('close', () => clearInterval(timer));
}
