import { connect, type ChannelModel, type ConfirmChannel, type ConsumeMessage, type Options } from 'amqplib';
import { eventually } from '@app/testing/eventually';

/** Longer than a service takes for anything. */
const GIVE_UP_MS = 10_000;

/** What came back to a message that somebody waited for. */
export interface BrokerReply {
  status: unknown;
  headers: Record<string, unknown>;
  text: string;
}

/** Another service on the broker: plain AMQP, none of our libraries. */
export class DirectPublisher {
  private readonly replies = new Map<unknown, BrokerReply>();
  private readonly deadLetters = new Map<unknown, ConsumeMessage>();

  private constructor(
    private readonly model: ChannelModel,
    private readonly channel: ConfirmChannel,
    private readonly replyQueue: string,
    /** Its broker account: that of the services, which may act for every tenant. */
    readonly account: string,
  ) {}

  static async connect(amqpUrl: string): Promise<DirectPublisher> {
    const model = await connect(amqpUrl);
    const channel = await model.createConfirmChannel();
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, 'replies', queue);
    const publisher = new DirectPublisher(model, channel, queue, decodeURIComponent(new URL(amqpUrl).username));
    await channel.consume(queue, (message) => message && publisher.onReply(message), { noAck: true });
    return publisher;
  }

  /** Publishes to exchange `commands`. @throws when the broker does not take it */
  publish(key: string, body: Buffer, options: Options.Publish): Promise<void> {
    return new Promise((resolve, reject) =>
      this.channel.publish('commands', key, body, options, (error) => (error ? reject(error as Error) : resolve())),
    );
  }

  /** The same for a message whose reply is waited for with {@link reply}. */
  async ask(key: string, body: Buffer, correlationId: string, options: Options.Publish): Promise<void> {
    await this.publish(key, body, { ...options, replyTo: this.replyQueue, correlationId });
  }

  reply(correlationId: string): Promise<BrokerReply> {
    return taken(this.replies, correlationId);
  }

  /** Reads the dead letters of a queue, and takes them off. */
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
