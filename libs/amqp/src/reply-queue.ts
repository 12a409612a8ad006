import type { Channel, Message } from 'amqplib';
import { closeQuietly } from './channel';

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
  return queue;
}
