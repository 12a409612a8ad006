import type { Channel, ConfirmChannel, Options } from 'amqplib';

interface Target {
  exchange: string;
  routingKey: string;
  /** Without a queue for it, it is returned; else it is gone. */
  mandatory: boolean;
}

/** Properties of a message. Those that are undefined are not sent, and neither are headers that are. */
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

/** Beneath amqplib's `publish`, and not in its types. */
interface Sending {
  sendMessage(method: object, properties: object, body: Buffer): boolean;
  pushConfirmCallback(onConfirm: (error: Error | null) => void): void;
}

/**
 * Publishes a message. amqplib's own `publish` makes the headers of each message the prototype of another object: V8 makes up a class for
 * each of them and reads them the slow way, and the classes keep what the message was made of until the next full collection.
 *
 * @param onConfirm once the broker has it, or never will: of a confirm channel, and for each of its messages
 * @throws Error when the channel is closing, or the protocol cannot carry it
 */
export function writeMessage(
  channel: Channel | ConfirmChannel,
  target: Target,
  { persistent, expiration, ...properties }: Properties,
  body: Buffer,
  onConfirm?: (error: Error | null) => void,
): void {
  const sending = channel as unknown as Sending;
  const deliveryMode = persistent ? 2 : 1;
  // Node 20 gives a literal that begins with a spread a V8 class of its own each time.
  sending.sendMessage(target, { deliveryMode, expiration: expiration?.toString(), ...properties }, body);
  if (onConfirm) sending.pushConfirmCallback(onConfirm);
}
