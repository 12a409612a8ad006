import type { Channel, ChannelModel, ConfirmChannel, GetMessage, Options } from 'amqplib';
import { closeChannel } from '@app/amqp/connection/opened-channel';
import { EARLIER_BINDINGS, EARLIER_QUEUES } from './earlier-topology';
import { BINDINGS } from './topology';

const NOT_FOUND = 404;

/** Waits for an answer of the broker. @throws Error when it takes too long */
export type Answered = <T>(what: string, answer: Promise<T>) => Promise<T>;

/**
 * Removes the queues and bindings that only versions without lanes use. Call it when none of their processes runs any more. Messages in their
 * suspect queue move to the current one; messages in their retry queues expire into the earlier command queue.
 *
 * @param answered bounds the wait for a confirm: a broker that is short of memory or disk gives none. Default: no bound
 * @returns the queues that are not empty yet: call it again later
 */
export async function finishUpgrade(model: ChannelModel, answered: Answered = (_, answer) => answer): Promise<string[]> {
  const channel = await model.createConfirmChannel();
  channel.on('error', () => undefined);
  // Bind before unbinding: a command may arrive twice for a moment (deduplicated by its message_id), but none is lost.
  for (const { queue, exchange, routingKey } of BINDINGS) await channel.bindQueue(queue, exchange, routingKey);
  for (const { queue, exchange, routingKey } of EARLIER_BINDINGS) await channel.unbindQueue(queue, exchange, routingKey);
  const left: string[] = [];
  for (const { name, moveTo } of EARLIER_QUEUES) {
    if (!(await exists(model, name))) continue;
    if (moveTo !== undefined) await moveAll(channel, { from: name, to: moveTo }, answered);
    // Not by its length: the broker says 0 as well while the leader of the queue does not answer.
    const head = await channel.get(name);
    if (!head) await channel.deleteQueue(name);
    else {
      channel.nack(head);
      left.push(name);
    }
  }
  await closeChannel(channel);
  return left;
}

/**
 * Whether the queue exists. Uses its own channel, because the broker closes the channel when the queue is missing.
 *
 * @throws Error when the connection is lost, or the account may not look
 */
export async function exists(model: ChannelModel, queue: string): Promise<boolean> {
  const channel: Channel = await model.createChannel();
  channel.on('error', () => undefined);
  try {
    await channel.checkQueue(queue);
    await closeChannel(channel);
    return true;
  } catch (error) {
    if ((error as { code?: number }).code === NOT_FOUND) return false;
    throw error;
  }
}

/** @throws Error when a message could not be moved: it stays where it is */
async function moveAll(channel: ConfirmChannel, { from, to }: { from: string; to: string }, answered: Answered): Promise<void> {
  let isReturned = false;
  channel.on('return', () => (isReturned = true));
  for (let message = await channel.get(from); message; message = await channel.get(from)) {
    const { content } = message;
    const { properties } = message as { properties: Options.Publish } & GetMessage;
    // The count belongs to the earlier queue. In the new queue this message has not been delivered yet.
    const { 'x-delivery-count': _, ...headers } = (properties.headers ?? {}) as Record<string, unknown>;
    channel.publish('retry', to, content, { ...properties, persistent: true, headers, mandatory: true });
    await answered(`the confirm of a message for queue ${to}`, channel.waitForConfirms());
    // The broker confirms it nevertheless.
    if (isReturned) throw new Error(`queue ${to} is not bound to exchange retry any more`);
    channel.ack(message);
  }
}
