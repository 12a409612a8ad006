import type { Channel, ConfirmChannel, Options } from 'amqplib';
import { internalsOfChannel } from '../amqplib-internals';

interface Target {
  exchange: string;
  routingKey: string;
  /** True: the broker returns a message that no queue is bound for. False: it drops it. */
  mandatory: boolean;
}

/** Properties of a message. Properties and headers that are undefined are not sent. */
export type Properties = Pick<
  Options.Publish,
  | 'contentType'
  | 'contentEncoding'
  | 'headers'
  | 'persistent'
  | 'correlationId'
  | 'replyTo'
  | 'expiration'
  | 'messageId'
  | 'timestamp'
  | 'type'
  | 'userId'
  | 'appId'
>;

/**
 * Publishes a message. amqplib's own `publish` makes the headers of each message the prototype of another object. V8 then creates a hidden class
 * for each message and reads it slowly, and these classes keep the message alive until the next full collection.
 *
 * @returns false when the socket does not take the bytes now; the channel emits `drain` when it has taken all
 * @param onConfirm called when the broker has confirmed or nacked the message. Required for every message of a confirm channel
 * @throws Error when the channel is closing, or the protocol cannot carry the message
 */
export function writeMessage(
  channel: Channel | ConfirmChannel,
  target: Target,
  { persistent, expiration, ...properties }: Properties,
  body: Buffer,
  onConfirm?: (error: Error | null) => void,
): boolean {
  const sending = internalsOfChannel(channel);
  const deliveryMode = persistent ? 2 : 1;
  // The spread must not come first: Node 20 gives each object literal that begins with a spread its own hidden class.
  const taken = sending.sendMessage(target, { deliveryMode, expiration: expiration?.toString(), ...properties }, body);
  if (onConfirm) sending.pushConfirmCallback(onConfirm);
  return taken;
}
