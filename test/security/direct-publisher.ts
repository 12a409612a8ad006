import { connect, type ChannelModel, type ConfirmChannel, type ConsumeMessage, type Options } from 'amqplib';
import { eventually } from '@app/testing/eventually';

/** Longer than any operation of a service takes, in milliseconds. */
const GIVE_UP_MS = 10_000;

/** Reply to a message with reply_to. */
export interface BrokerReply {
  status: unknown;
  headers: Record<string, unknown>;
  text: string;
}

/** Another service on the broker, with plain AMQP and none of our libraries. */
export class DirectPublisher {
  private readonly replies = new Map<unknown, BrokerReply>();
  private readonly deadLetters = new Map<unknown, ConsumeMessage>();
  /** Aborts with the broker's reason when the broker closes the channel: amqplib calls no callback of a confirm then. */
  private readonly closed = new AbortController();

  private constructor(
    private readonly model: ChannelModel,
    private readonly channel: ConfirmChannel,
    private readonly replyQueue: string,
    /** Its broker account: the account of the services, which may act for every tenant. */
    readonly account: string,
  ) {}

  static async connect(amqpUrl: string): Promise<DirectPublisher> {
    const model = await connect(amqpUrl);
    const channel = await model.createConfirmChannel();
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, 'replies', queue);
    const publisher = new DirectPublisher(model, channel, queue, decodeURIComponent(new URL(amqpUrl).username));
    channel.on('error', (error: Error) => publisher.closed.abort(error));
    await channel.consume(queue, (message) => message && publisher.onReply(message), { noAck: true });
    return publisher;
  }

  /** Publishes to exchange `commands`. @throws when the broker refuses it, does not confirm it in time, or has closed the channel */
  publish(key: string, body: Buffer, options: Options.Publish): Promise<void> {
    const given = AbortSignal.any([this.closed.signal, AbortSignal.timeout(GIVE_UP_MS)]);
    return new Promise((resolve, reject) => {
      const giveUp = () => reject(given.reason as Error);
      if (given.aborted) return giveUp();
      given.addEventListener('abort', giveUp, { once: true });
      this.channel.publish('commands', key, body, options, (error) => (error ? reject(error as Error) : resolve()));
    });
  }

  /** Publishes a message whose reply is read with {@link reply}. */
  async ask(key: string, body: Buffer, correlationId: string, options: Options.Publish): Promise<void> {
    await this.publish(key, body, { ...options, replyTo: this.replyQueue, correlationId });
  }

  reply(correlationId: string): Promise<BrokerReply> {
    return taken(this.replies, correlationId);
  }

  /** Takes all dead letters from a queue. */
  async takeDeadLetters(queue: string): Promise<void> {
    await this.channel.consume(
      queue,
      (message) => message && this.deadLetters.set(message.properties.headers?.['x-request-id'], message),
      { noAck: true },
    );
  }

  /** The dead letter with this header `x-request-id`. */
  deadLetter(mark: string): Promise<ConsumeMessage> {
    return taken(this.deadLetters, mark);
  }

  close(): Promise<void> {
    return this.model.close();
  }

  private onReply({ content, properties: { correlationId, headers = {} } }: ConsumeMessage): void {
    this.replies.set(correlationId, { status: headers['x-status'], headers, text: content.toString() });
  }
}

async function taken<T>(from: Map<unknown, T>, name: string): Promise<T> {
  const found = await eventually(() => from.get(name), GIVE_UP_MS);
  from.delete(name);
  return found as T;
}
