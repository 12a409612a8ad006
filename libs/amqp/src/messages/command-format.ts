import { pack, unpack, Unreadable } from './packed';
import { expirationOf, messageProperties, type Request, type Sender } from './message-properties';

/** AMQP `type` of a message with several commands of one routing key. */
export const COMMANDS_TYPE = 'commands';

/** Most commands in one message. It multiplies the prefetch of their queue. */
export const MOST_COMMANDS = 32;

/**
 * A consumer takes commands with a smaller body for light, and starts them at once. Of the others the gateway publishes few at a time. Some
 * operations have a smaller number of their own.
 */
export const LIGHT_COMMAND_BYTES = 2048;

/** A command in such a message. The other properties are those of the message. */
export interface PackedCommand {
  correlationId: string;
  messageId: string;
  headers: Record<string, unknown>;
  body: Buffer;
}

/**
 * Body and properties of a message with one command, or with several of one routing key.
 *
 * @param correlationId of the message
 */
export function commandMessage(requests: readonly Request[], correlationId: string, sender: Sender, replyTo?: string) {
  const now = performance.now();
  const timeLeft = ({ deadline }: Request) => Math.ceil(deadline - now);
  const commands = requests.map((request) => ({
    body: request.body,
    properties: messageProperties(request.operation, request.options, sender, request.correlationId, {
      replyTo,
      timeoutMs: timeLeft(request),
    }),
  }));
  const [first] = commands;
  if (commands.length === 1) return first;
  const { persistent, timestamp, appId, userId } = first.properties;
  const contentType = 'application/octet-stream';
  const expiration = expirationOf('command', Math.max(...requests.map(timeLeft)));
  return {
    body: pack(
      commands.map(({ properties, body }) => ({
        head: [properties.correlationId, properties.messageId, properties.headers],
        body,
      })),
    ),
    properties: { persistent, contentType, expiration, type: COMMANDS_TYPE, correlationId, replyTo, timestamp, appId, userId },
  };
}

/** @throws Unreadable also when one command cannot be read */
export function unpackCommands(content: Buffer): PackedCommand[] {
  return unpack(content, MOST_COMMANDS).map(({ head: [correlationId, messageId, headers], body }) => {
    if (typeof correlationId !== 'string' || typeof messageId !== 'string' || !isObject(headers))
      throw new Unreadable('an entry of the index is no command');
    return { correlationId, messageId, headers, body };
  });
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
