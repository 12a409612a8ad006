import type { Channel, ConsumeMessage } from 'amqplib';
import { COMMANDS_TYPE, unpackCommands, type PackedCommand } from '@app/amqp/messages/command-format';
import { isChannelClosed } from '@app/amqp/connection/opened-channel';
import type { Acks } from './delivery';

/** A command of a message. */
export interface Part {
  message: ConsumeMessage;
  acks: Acks;
}

/**
 * The commands of a message: one, or several of a caller of this system. Only its processes publish to exchange `calls`. A message that cannot be
 * read stays one command, and is refused as such: its caller then sends each command alone.
 */
export function commandsOf(message: ConsumeMessage, acks: Acks): Part[] {
  const alone = { message, acks };
  if (message.properties.type !== COMMANDS_TYPE || message.fields.exchange !== 'calls') return [alone];
  let commands: PackedCommand[];
  try {
    commands = unpackCommands(message.content);
  } catch {
    return [alone];
  }
  const shared = new SharedAcks(acks, message, commands.length);
  return commands.map((command) => ({ message: partOf(message, command), acks: shared }));
}

function partOf(
  { fields, properties }: ConsumeMessage,
  { correlationId, messageId, headers, body }: PackedCommand,
): ConsumeMessage {
  return {
    fields,
    content: body,
    properties: {
      ...properties,
      contentType: 'application/json',
      type: fields.routingKey,
      correlationId,
      messageId,
      // That of the message has the count of its deliveries.
      headers: { ...headers, ...properties.headers },
    },
  };
}

/** Settles a message when the last of its commands is settled. */
class SharedAcks implements Acks {
  private readonly settled = new Set<ConsumeMessage>();
  private again = false;
  /** Resolves when the last command is settled, or when the channel ends. */
  private end?: Promise<void>;
  private onLast?: () => void;

  constructor(
    private readonly acks: Acks,
    private readonly message: ConsumeMessage,
    private readonly count: number,
  ) {}

  get channel(): Channel {
    return this.acks.channel;
  }

  ack(part: ConsumeMessage): void {
    if (this.settled.has(part)) return;
    this.settled.add(part);
    if (this.settled.size < this.count) return;
    if (this.again) this.acks.requeue(this.message);
    else this.acks.ack(this.message);
    this.onLast?.();
  }

  /** A command that shares its message is delivered again with the others, until the last of them is settled. */
  async ackForGood(part: ConsumeMessage): Promise<boolean> {
    this.ack(part);
    if (this.settled.size < this.count) await (this.end ??= this.untilEnd());
    return this.settled.size === this.count && !this.again && this.acks.ackForGood(this.message);
  }

  private untilEnd(): Promise<void> {
    const { channel } = this;
    return new Promise((resolve) => {
      // A channel lives for days: nothing of a message may stay at it.
      this.onLast = () => {
        channel.off('close', resolve);
        resolve();
      };
      channel.once('close', resolve);
      if (isChannelClosed(channel)) resolve();
    });
  }

  requeue(part: ConsumeMessage): void {
    if (!this.settled.has(part)) this.again = true;
    this.ack(part);
  }
}
