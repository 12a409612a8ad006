import type { Channel, ConsumeMessage } from 'amqplib';
import { closeQuietly } from './opened-channel';

const ASK_EVERY_MS = 1000;

/**
 * Declares an exclusive queue, which ends with the connection, and consumes it. When the broker cancels the consumer, the channel is closed.
 *
 * @param binding `routingKey`: default the name of the queue. `limits`: further arguments of the queue
 * @returns its name, which the broker chooses: an exclusive queue with a fixed name stays locked while the previous connection is half open
 */
export async function openOwnQueue(
  channel: Channel,
  { exchange, routingKey, limits }: { exchange: string; routingKey?: string; limits?: Record<string, string | number> },
  onMessage: (message: ConsumeMessage) => void,
): Promise<string> {
  const { queue } = await channel.assertQueue('', {
    exclusive: true,
    autoDelete: true,
    durable: false,
    arguments: { 'x-queue-type': 'classic', ...limits },
  });
  await channel.bindQueue(queue, exchange, routingKey ?? queue);
  await channel.consume(queue, (message) => (message ? onMessage(message) : closeQuietly(channel)), { noAck: true });
  watch(channel, queue, exchange);
  return queue;
}

/**
 * Asks once a second whether the queue and its exchange still exist. When one does not, the broker closes the channel.
 *
 * The binding goes with the exchange, and does not come back with it. With Khepri before RabbitMQ 4.2, a node that was frozen or cut off deletes the
 * exclusive queues of other nodes from the metadata when it is back. Their consumers are not cancelled, and no message arrives any more
 * (rabbitmq-server, issue 12949).
 */
function watch(channel: Channel, queue: string, exchange: string): void {
  let isAsking = false;
  const ask = async () => {
    isAsking = true;
    await channel.checkQueue(queue);
    await channel.checkExchange(exchange);
    isAsking = false;
  };
  // The loss of the channel says everything about a failure. Until then there is no further question.
  const timer = setInterval(() => void (isAsking || ask().catch(() => undefined)), ASK_EVERY_MS).unref();
  channel.once('close', () => clearInterval(timer));
}
