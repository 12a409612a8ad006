import type { Channel, ChannelModel, ConfirmChannel, GetMessage, Options } from 'amqplib';
import { EARLIER_BINDINGS, EARLIER_QUEUES } from './earlier-topology';
import { BINDINGS } from './topology';

/**
 * Takes away what only processes of versions without lanes use: to be called when none of them runs any more. Messages that are left in their
 * queue of suspects move to the one of this version; their retry queues empty themselves into the earlier queue of commands.
 *
 * @returns the queues that are not empty yet: call it again later
 */
export async function finishUpgrade(model: ChannelModel): Promise<string[]> {
  const channel = await model.createConfirmChannel();
  channel.on('error', () => undefined);
  // First the new bindings: for a moment a command may come twice, which is once by its message_id, and never not at all.
  for (const { queue, exchange, routingKey } of BINDINGS) await channel.bindQueue(queue, exchange, routingKey);
  for (const { queue, exchange, routingKey } of EARLIER_BINDINGS) await channel.unbindQueue(queue, exchange, routingKey);
  const left: string[] = [];
  for (const { name, moveTo } of EARLIER_QUEUES) {
    if (!(await exists(model, name))) continue;
    if (moveTo !== undefined) await moveAll(channel, name, moveTo);
    const { messageCount } = await channel.checkQueue(name);
    if (messageCount > 0) left.push(name);
    else await channel.deleteQueue(name);
  }
  await channel.close();
  return left;
}

/** Whether there is such a queue. On a channel of its own, because the broker closes it when there is no such queue. */
export async function exists(model: ChannelModel, queue: string): Promise<boolean> {
  const channel: Channel = await model.createChannel();
  channel.on('error', () => undefined);
  try {
    await channel.checkQueue(queue);
    await channel.close();
    return true;
  } catch {
    return false;
  }
}

async function moveAll(channel: ConfirmChannel, from: string, to: string): Promise<void> {
  for (let message = await channel.get(from); message; message = await channel.get(from)) {
    const { content } = message;
    const { properties } = message as { properties: Options.Publish } & GetMessage;
    // In another queue it has not been delivered in vain.
    const { 'x-delivery-count': _, ...headers } = (properties.headers ?? {}) as Record<string, unknown>;
    channel.publish('retry', to, content, { ...properties, persistent: true, headers, mandatory: true });
    await channel.waitForConfirms();
    channel.ack(message);
  }
}
