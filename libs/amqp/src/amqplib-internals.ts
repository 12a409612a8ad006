import type { Socket } from 'node:net';
import type { Channel, ChannelModel, ConfirmChannel } from 'amqplib';

/** The one place that reaches beneath the public types of amqplib. amqplib-internals.int-spec.ts tests each assumption. */

interface ConnectionInternals {
  /** True once the socket is closed, or about to be. */
  expectSocketClose: boolean;
  /** Whether the broker has said that it takes no messages. */
  blocked: boolean;
  stream: Socket;
  /** Received bytes that are not decoded yet. */
  rest: Buffer;
  /** Decodes the next frame. When `rest` does not hold a whole frame, it reads more from the socket and calls itself again. */
  recvFrame(): unknown;
}

interface ChannelInternals {
  /** The method below `publish`. */
  sendMessage(method: object, properties: object, body: Buffer): boolean;
  /** Registers the callback for the confirm of the latest message of a confirm channel. */
  pushConfirmCallback(onConfirm: (error: Error | null) => void): void;
}

export const internalsOfConnection = (model: ChannelModel) => model.connection as unknown as ConnectionInternals;

export const internalsOfChannel = (channel: Channel | ConfirmChannel) => channel as unknown as ChannelInternals;
