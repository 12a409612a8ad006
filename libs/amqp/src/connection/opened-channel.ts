import type { Channel, ChannelModel } from 'amqplib';

export const OPENING = 'opening a channel';
export const SETTING_UP = 'setting up the channel';

export interface Opened<C extends Channel> {
  model: ChannelModel;
  channel: C;
  /** Resolves with the error that closed the channel if there was one. */
  ended: Promise<Error | undefined>;
}

/** The broker took too long for a step. */
export class TooSlow extends Error {
  constructor(
    name: string,
    readonly step: string,
    address: string,
    timeoutMs: number,
  ) {
    super(`${name}: ${step} at ${address} took over ${timeoutMs / 1000} s`);
  }
}

/** The setup will soon succeed: another channel is opened after a short wait, and not after longer and longer ones. */
export class NotYet extends Error {
  /** Half of it is random. */
  readonly waitMs = 50;
}

const ACCESS_REFUSED = 403;
const CLOSED = new WeakSet<Channel>();
const ERRORS = new WeakMap<Channel, Error & { code?: number }>();

/** Whether a channel that a {@link RabbitChannel} opened is gone. */
export const isChannelClosed = (channel: Channel): boolean => CLOSED.has(channel);

/** Closes without waiting: the answer never arrives when the connection ends first. */
export const closeQuietly = (channel: Channel): void => void channel.close().catch(() => undefined);

/** Closes a channel, and waits for its end. The promise of amqplib never settles when the connection ends first. */
export async function closeChannel(channel: Channel): Promise<void> {
  const ended = new Promise((resolve) => channel.once('close', resolve));
  await Promise.race([ended, channel.close().catch(() => undefined)]);
}

/** The error with which the broker closed the channel. A message that was not confirmed before does not have it. */
export const errorOf = (channel: Channel): (Error & { code?: number }) | undefined => ERRORS.get(channel);

/** The same error when the account may not do what it did. */
export function refusalOf(channel: Channel): Error | undefined {
  const error = errorOf(channel);
  return error?.code === ACCESS_REFUSED ? error : undefined;
}

/** Resolves when the channel closes, with the error that closed it if there was one. */
export function endOf(channel: Channel, onListenerError: (error: Error, event: string) => void): Promise<Error | undefined> {
  // Each message whose commands wait for one another may add a listener.
  channel.setMaxListeners(0);
  return new Promise((resolve) => {
    channel.on('error', (error: Error) => ERRORS.set(channel, error));
    channel.on('close', () => {
      CLOSED.add(channel);
      resolve(errorOf(channel));
    });
    // Without this listener, an exception in any listener or consumer callback makes amqplib close the whole connection.
    channel.on('handler-error', onListenerError);
  });
}
