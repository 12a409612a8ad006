import type { Channel } from 'amqplib';
import type { RabbitConnection } from '@app/amqp/connection/connection';
import { closeQuietly } from '@app/amqp/connection/opened-channel';

const MAX_BYTES = 256 * 1024 * 1024;
const NOT_FOUND = 404;
const ACCESS_REFUSED = 403;

/** Exchange and queue of the dead letters of a queue. */
export const deadOf = (queue: string) => `${queue}.dead`;

/** The queue of a listener: the operator has made it, or an account of before version 0.2 makes it here. */
export class ListenerQueue {
  private mayBind = true;

  /**
   * @param types of the events that it is bound to, as far as the account may bind it
   * @param maxLength most waiting events of a queue that is made here
   */
  constructor(
    private readonly connection: RabbitConnection,
    private readonly name: string,
    private readonly types: readonly string[],
    private readonly maxLength: number,
  ) {}

  /** Makes sure that it is there, for each new channel. @throws Error of the broker, or that it does not exist and may not be made */
  async prepare(channel: Channel): Promise<void> {
    if (await this.isThere()) await this.bindAsFarAsAllowed();
    else await this.declareIfAllowed(channel);
  }

  /** Whether the operator has declared the queue and its dead-letter exchange for this account. */
  private isThere(): Promise<boolean> {
    return this.allowed(NOT_FOUND, async (channel) => {
      await channel.checkQueue(this.name);
      await channel.checkExchange(deadOf(this.name));
    });
  }

  /** Binds the queue if the account may. Otherwise the operator has bound it. */
  private async bindAsFarAsAllowed(): Promise<void> {
    this.mayBind &&= await this.allowed(ACCESS_REFUSED, (channel) => this.bind(channel));
  }

  private async bind(channel: Channel): Promise<void> {
    for (const type of this.types) await channel.bindQueue(this.name, 'events', type);
  }

  private async declareIfAllowed(channel: Channel): Promise<void> {
    try {
      await this.declare(channel);
    } catch (error) {
      const { code, message } = error as Error & { code?: unknown };
      if (code !== ACCESS_REFUSED) throw error;
      const missing = `queue ${this.name} or exchange ${deadOf(this.name)} does not exist`;
      throw new Error(`${missing}, and the account may not declare it: ${message}`, { cause: error });
    }
  }

  private async declare(channel: Channel): Promise<void> {
    const dead = deadOf(this.name);
    const bounded = { 'x-queue-type': 'quorum', 'x-max-length': this.maxLength, 'x-max-length-bytes': MAX_BYTES };
    await channel.assertExchange(dead, 'fanout', { durable: true });
    await channel.assertQueue(dead, { durable: true, arguments: { ...bounded, 'x-overflow': 'drop-head' } });
    await channel.bindQueue(dead, dead, '');
    await channel.assertQueue(this.name, {
      durable: true,
      // drop-head, because a full queue that rejects loses the newest events.
      arguments: { ...bounded, 'x-overflow': 'drop-head', 'x-delivery-limit': 20, 'x-dead-letter-exchange': dead },
    });
    await this.bind(channel);
  }

  /** Runs an action on its own channel, because the broker closes the channel on a refusal. @returns false when refused with this code */
  private async allowed(code: number, action: (channel: Channel) => Promise<void>): Promise<boolean> {
    const model = this.connection.current;
    if (!model) throw new Error('the connection was lost');
    const channel = await model.createChannel();
    channel.on('error', () => undefined);
    try {
      await action(channel);
      closeQuietly(channel);
      return true;
    } catch (error) {
      if ((error as { code?: unknown }).code !== code) throw error;
      return false;
    }
  }
}
