import { randomUUID } from 'node:crypto';
import { ClientProxy, type ReadPacket, type WritePacket } from '@nestjs/microservices';
import type { ConfirmChannel, Message as AmqpMessage, Options } from 'amqplib';
import type { Registry } from 'prom-client';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { ApiError } from '@app/contracts/error';
import type { Message } from '@app/contracts/message';
import { notPublished, outcomeUnknown, unavailable } from './call-errors';
import { closeQuietly, RabbitChannel } from './channel';
import { checkExchanges } from './check-topology';
import { RabbitConnection, type ConnectionOptions, type ConnectionState } from './connection';
import { HEADER } from './headers';
import { messageProperties, type CallOptions, type Sender } from './message-properties';
import { TransportMetrics } from './metrics';
import { PendingCalls } from './pending-calls';
import { ConfirmedPublisher } from './publisher';
import { decodeReply, type Answer } from './reply-format';
import { within } from './within';

export type { CallOptions } from './message-properties';
export type { Answer } from './reply-format';

export interface RabbitClientOptions {
  /** The name is that of the app, and goes with every message as `app_id`. */
  connection: ConnectionOptions;
  /** Most calls waiting for their reply; more are refused at once. Default 1000. */
  maxPending?: number;
  /** How long close() waits for pending calls, in milliseconds. Default 10,000. */
  drainTimeoutMs?: number;
  /** Default: prom-client's own register. */
  metrics?: Registry;
}

/** Calls services over the broker. */
export class RabbitClient extends ClientProxy {
  private readonly metrics: TransportMetrics;
  private readonly connection: RabbitConnection;
  private readonly channel: RabbitChannel<ConfirmChannel>;
  private readonly publisher: ConfirmedPublisher;
  private readonly calls = new PendingCalls();
  private readonly sender: Sender;
  private replyQueue?: string;
  private closed?: Promise<void>;

  /** @throws Error when the broker's URL is not one */
  constructor(readonly options: RabbitClientOptions) {
    super();
    const { connection } = options;
    this.metrics = TransportMetrics.of(options.metrics);
    this.connection = new RabbitConnection({ ...connection, name: `${connection.name} calling` }, this.metrics);
    this.sender = { appId: connection.name, userId: this.connection.username };
    this.channel = new RabbitChannel(this.connection, {
      name: 'calls',
      open: (model) => model.createConfirmChannel(),
      setup: (channel) => this.setUp(channel),
    });
    this.channel.on('lost', () => this.calls.rejectAll(() => outcomeUnknown('the connection was lost before the answer came')));
    this.publisher = new ConfirmedPublisher(this.channel, this.metrics);
  }

  /** Starts to connect; does not wait for the broker: see {@link check}. */
  async connect(): Promise<void> {
    this.connection.start();
  }

  /** Refuses new calls, waits for the pending ones, disconnects. */
  close(): Promise<void> {
    return (this.closed ??= this.drain());
  }

  /** Calls waiting for their reply. */
  get pending(): number {
    return this.calls.size;
  }

  get state(): ConnectionState {
    return this.connection.state;
  }

  /** undefined when calls can be made, else a short reason without secrets. */
  check(): string | undefined {
    return this.channel.check();
  }

  /**
   * Publishes a message and waits for its reply.
   *
   * @throws ApiError UNAVAILABLE: certainly not executed, and never will be. DEADLINE_EXCEEDED: written, and the outcome is unknown.
   *   Any other status is the service's answer.
   */
  async call<Req, Res>(message: Message<Req, Res>, body: Req, options: CallOptions): Promise<Answer<Res>> {
    const finish = this.metrics.calls.startTimer({ message: message.pattern });
    try {
      const answer = decodeReply<Res>(await this.replyTo(message, body, options));
      finish({ status: 'OK' });
      return answer;
    } catch (error) {
      finish({ status: error instanceof ApiError ? error.status : 'INTERNAL' });
      throw error;
    } finally {
      this.metrics.callsPending.set({ connection: this.options.connection.name }, this.calls.size);
    }
  }

  unwrap<T>(): T {
    return this.connection.current as T;
  }

  /** Nest's `send()`. Without a tenant, so only for messages that need none; {@link call} is the way for the others. */
  protected publish({ pattern, data }: ReadPacket, callback: (packet: WritePacket) => void): () => void {
    this.call(messageOf(pattern), data as object, { requestId: randomUUID(), timeoutMs: 5000 })
      .then((answer) => answer.parse())
      .then(
        (response) => callback({ response, isDisposed: true }),
        (err: unknown) => callback({ err, isDisposed: true }),
      );
    return () => undefined;
  }

  /** Nest's `emit()`: resolves when the broker has the message. The same limits as `send()`. */
  protected async dispatchEvent<T>({ pattern, data }: ReadPacket): Promise<T> {
    const properties = messageProperties(messageOf(pattern), { requestId: randomUUID() }, this.sender);
    const error = notPublished(await this.write(pattern as string, data, { ...properties, correlationId: randomUUID() }));
    if (error) throw error;
    return undefined as T;
  }

  private async setUp(channel: ConfirmChannel): Promise<void> {
    await checkExchanges(channel, ['commands', 'replies']);
    // Named by the broker: a name of ours would be locked by the connection before while that is half open.
    const { queue } = await channel.assertQueue('', {
      exclusive: true,
      autoDelete: true,
      durable: false,
      arguments: { 'x-queue-type': 'classic' },
    });
    await channel.bindQueue(queue, 'replies', queue);
    await channel.consume(queue, (reply) => (reply ? this.onReply(reply) : closeQuietly(channel)), { noAck: true });
    this.replyQueue = queue;
  }

  private onReply(reply: AmqpMessage): void {
    if (!this.calls.resolve(String(reply.properties.correlationId), reply)) this.metrics.unknownReplies.inc();
  }

  private replyTo<Req, Res>(message: Message<Req, Res>, body: Req, options: CallOptions): Promise<AmqpMessage> {
    const timeoutMs = Math.floor(options.timeoutMs);
    if (this.closed) throw unavailable('shutting down');
    if (this.calls.size >= (this.options.maxPending ?? 1000)) throw unavailable('too many calls are pending');
    if (!(timeoutMs > 0)) throw unavailable('no time is left');

    const correlationId = randomUUID();
    const reply = this.calls.wait(correlationId, timeoutMs, () => outcomeUnknown('no answer came in time'));
    this.metrics.callsPending.set({ connection: this.options.connection.name }, this.calls.size);
    void this.publishCall(message, body, correlationId, { ...options, timeoutMs });
    return reply;
  }

  private async publishCall<Req, Res>(message: Message<Req, Res>, body: Req, correlationId: string, options: CallOptions) {
    const { headers, ...properties } = messageProperties(message, options, this.sender);
    let error: ApiError | undefined;
    try {
      const outcome = await this.write(message.pattern, body, {
        ...properties,
        correlationId,
        replyTo: this.replyQueue,
        // A command would be dead-lettered; its deadline is looked at by the consumer.
        ...(message.kind === 'query' && { expiration: options.timeoutMs }),
        headers: { ...headers, [HEADER.deadline]: Date.now() + options.timeoutMs },
      });
      error = notPublished(outcome);
    } catch (notWritten) {
      error = unavailable((notWritten as Error).message);
    }
    if (error) this.calls.reject(correlationId, error);
  }

  private async write(pattern: string, body: unknown, properties: Options.Publish & { correlationId: string }) {
    return this.publisher.publish({
      exchange: 'commands',
      routingKey: pattern,
      body: Buffer.from(JSON.stringify(body)),
      properties,
    });
  }

  private async drain(): Promise<void> {
    await within(this.options.drainTimeoutMs ?? 10_000, this.calls.whenEmpty());
    this.calls.rejectAll(() => outcomeUnknown('shutting down'));
    await this.channel.close();
    await this.connection.close();
  }
}

function messageOf(pattern: unknown): Message<object, object> {
  const message = ALL_MESSAGES.find((candidate) => candidate.pattern === pattern);
  if (!message) throw new Error(`There is no message ${String(pattern)}.`);
  return message;
}
