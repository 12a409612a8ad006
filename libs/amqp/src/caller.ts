import { randomUUID } from 'node:crypto';
import type { Channel, ConfirmChannel, Message as AmqpMessage } from 'amqplib';
import type { ApiError } from '@app/contracts/error';
import { notPublished, outcomeUnknown, unavailable } from './call-errors';
import { closeQuietly, RabbitChannel } from './channel';
import { checkExchanges } from './check-topology';
import type { RabbitConnection } from './connection';
import { messageProperties, type CallOptions, type Operation, type Sender } from './message-properties';
import { PendingCalls } from './pending-calls';
import { ConfirmedPublisher, type PublishOutcome } from './publisher';
import { Queries } from './queries';
import { BATCH_TYPE, decodeBatch, decodeReply, type Answer, type ReceivedReply } from './reply-format';
import { warmUp } from './warm-up';
import { within } from './within';

export interface CallerOptions {
  /** The `app_id` of every message. */
  appId: string;
  /** Most calls waiting for their reply; more are refused at once. Default 1000. */
  maxPending?: number;
  /** Exchange for the messages; the account needs write permission. Default `commands`. */
  exchange?: string;
  /** Exchange for queries while the queue behind `exchange` is on a broker node that is away. Default: none, and queries fail meanwhile. */
  standbyExchange?: string;
  /** One operation for each queue that is called. Each new channel publishes them once, without effect: see {@link warmUp}. */
  warmUp?: readonly Operation[];
}

/** Channels in a row that may be given up because a queue refuses. More: the queue is full, and the other queues must not wait for it. */
const MOST_COLD_CHANNELS = 5;

/** How long calls wait for a channel after the connection was lost: long enough to reach another node of the broker. */
const FAILOVER_MS = 1000;

/** Publishes commands and queries, and waits for their replies in its own reply queue. */
export class Caller {
  private readonly channel: RabbitChannel<ConfirmChannel>;
  private readonly publisher: ConfirmedPublisher;
  private readonly calls = new PendingCalls();
  private readonly sender: Sender;
  private readonly exchange: string;
  private readonly replyQueues = new WeakMap<Channel, string>();
  private readonly queries: Queries;
  /** Correlation ids of calls that wait for a channel: nothing of them was written. */
  private readonly waiting = new Set<string>();
  /** When the channel was lost, in milliseconds of `performance.now()`. */
  private lostAt = performance.now();
  private coldChannels = 0;
  private closed = false;

  constructor(
    private readonly connection: RabbitConnection,
    private readonly options: CallerOptions,
  ) {
    this.exchange = options.exchange ?? 'commands';
    this.sender = { appId: options.appId, userId: connection.username };
    this.channel = new RabbitChannel(connection, {
      name: 'calls',
      open: (model) => model.createConfirmChannel(),
      setup: (channel) => this.setUp(channel),
      drain: () => this.calls.endOfPresent(),
    });
    this.channel.on('lost', () => {
      this.lostAt = performance.now();
      // Deferred, so that calls that were certainly refused are rejected with that reason first.
      setImmediate(() => void this.recover());
    });
    this.publisher = new ConfirmedPublisher(this.channel);
    this.queries = new Queries(
      {
        publish: (exchange, query, correlationId, timeoutMs) =>
          this.publishCall(exchange, query.operation, query.body, query.options, correlationId, timeoutMs),
        reject: (correlationId, error) => this.calls.reject(correlationId, error),
        repeated: (pattern, reason) => connection.observer.repeated(pattern, reason),
      },
      this.exchange,
      options.standbyExchange,
    );
  }

  /** Calls waiting for their reply. */
  get pending(): number {
    return this.calls.size;
  }

  /** undefined when calls can be made, else a short reason without secrets. */
  check(): string | undefined {
    return this.channel.check();
  }

  /** Waits until calls can be made. @returns false after `timeoutMs` milliseconds, or when the caller is closed */
  whenReady(timeoutMs: number): Promise<boolean> {
    return this.channel.whenReady(timeoutMs);
  }

  /**
   * Publishes a message and waits for its reply.
   *
   * @throws ApiError UNAVAILABLE: not executed, and never will be. DEADLINE_EXCEEDED: written, and the outcome is unknown. Any other status is
   *   the service's answer
   */
  async call<Res>(operation: Operation, body: unknown, options: CallOptions): Promise<Answer<Res>> {
    const correlationId = randomUUID();
    try {
      return decodeReply<Res>(await this.replyTo(operation, body, options, correlationId));
    } finally {
      this.queries.forget(correlationId);
      this.reportPending();
    }
  }

  /** Publishes a message without waiting for a reply. @throws NotWritten at once when the broker cannot take it now */
  async publish(operation: Operation, body: unknown, options: Omit<CallOptions, 'timeoutMs'>): Promise<PublishOutcome> {
    return this.publisher.publish({
      exchange: this.exchange,
      routingKey: operation.pattern,
      body: Buffer.from(JSON.stringify(body)),
      properties: messageProperties(operation, options, this.sender, randomUUID()),
    });
  }

  /** Refuses new calls, and waits up to `drainTimeoutMs` milliseconds for the pending ones. */
  async close(drainTimeoutMs: number): Promise<void> {
    this.closed = true;
    await within(drainTimeoutMs, this.calls.whenEmpty());
    this.calls.rejectAll(() => outcomeUnknown('shutting down'));
    await this.channel.close();
  }

  private async setUp(channel: ConfirmChannel): Promise<void> {
    const { standbyExchange } = this.options;
    await checkExchanges(channel, [this.exchange, ...(standbyExchange === undefined ? [] : [standbyExchange]), 'replies']);
    // The broker chooses the name: an exclusive queue with a fixed name stays locked while the previous connection is half open.
    const { queue } = await channel.assertQueue('', {
      exclusive: true,
      autoDelete: true,
      durable: false,
      arguments: { 'x-queue-type': 'classic' },
    });
    await channel.bindQueue(queue, 'replies', queue);
    await channel.consume(queue, (reply) => (reply ? this.onReply(reply) : closeQuietly(channel)), { noAck: true });
    this.replyQueues.set(channel, queue);
    await this.warmUp(channel, queue);
  }

  private async warmUp(channel: ConfirmChannel, replyTo: string): Promise<void> {
    const { warmUp: operations = [], standbyExchange } = this.options;
    const targets = operations.flatMap(({ kind, pattern }) => {
      const exchange = kind === 'command' ? this.exchange : standbyExchange;
      return exchange === undefined ? [] : { exchange, routingKey: pattern };
    });
    if ((await warmUp(channel, targets, this.sender, replyTo)) || ++this.coldChannels > MOST_COLD_CHANNELS) this.coldChannels = 0;
    else throw new Error('a queue refuses messages: it has no leader yet, or is full');
  }

  /** Replies come over the channel that the call was published on: another channel may be in setup. */
  private get replyQueue(): string | undefined {
    const { current } = this.channel;
    return current && this.replyQueues.get(current);
  }

  private onReply({ content, properties }: AmqpMessage): void {
    const headers: Record<string, unknown> = properties.headers ?? {};
    const replies =
      properties.type === BATCH_TYPE
        ? decodeBatch(content)
        : [{ correlationId: String(properties.correlationId), reply: { content, headers } }];
    for (const { correlationId, reply } of replies)
      if (!this.calls.resolve(this.queries.answered(correlationId), reply)) this.connection.observer.unknownReply();
  }

  private replyTo(operation: Operation, body: unknown, options: CallOptions, correlationId: string): Promise<ReceivedReply> {
    const timeoutMs = Math.floor(options.timeoutMs);
    if (this.closed) throw unavailable('shutting down');
    if (this.calls.size >= (this.options.maxPending ?? 1000)) throw unavailable('too many calls are pending');
    if (!(timeoutMs > 0)) throw unavailable('no time is left');

    const reply = this.calls.wait(correlationId, timeoutMs, () => outcomeUnknown('no answer came in time'));
    this.reportPending();
    if (this.channel.current) this.begin(operation, body, options, correlationId, timeoutMs);
    else void this.beginLater(operation, body, options, correlationId, performance.now() + timeoutMs);
    return reply;
  }

  private begin(operation: Operation, body: unknown, options: CallOptions, correlationId: string, timeoutMs: number): void {
    if (operation.kind === 'query') this.queries.ask(operation, body, options, correlationId, timeoutMs);
    else void this.command(operation, body, options, correlationId, timeoutMs);
  }

  /** A call that comes while the connection moves to another node: nothing was written, so it can wait for that. */
  private async beginLater(
    operation: Operation,
    body: unknown,
    options: CallOptions,
    correlationId: string,
    deadline: number,
  ): Promise<void> {
    this.waiting.add(correlationId);
    await this.channel.whenReady(Math.min(deadline - performance.now(), this.lostAt + FAILOVER_MS - performance.now()));
    this.waiting.delete(correlationId);
    const timeoutMs = Math.floor(deadline - performance.now());
    if (timeoutMs > 0) this.begin(operation, body, options, correlationId, timeoutMs);
  }

  private async command(
    operation: Operation,
    body: unknown,
    options: CallOptions,
    correlationId: string,
    timeoutMs: number,
  ): Promise<void> {
    let error: ApiError | undefined;
    try {
      error = notPublished(await this.publishCall(this.exchange, operation, body, options, correlationId, timeoutMs));
    } catch (notWritten) {
      error = unavailable((notWritten as Error).message);
    }
    if (error) this.calls.reject(correlationId, error);
  }

  private publishCall(
    exchange: string,
    operation: Operation,
    body: unknown,
    options: CallOptions,
    correlationId: string,
    timeoutMs: number,
  ): Promise<PublishOutcome> {
    return this.publisher.publish({
      exchange,
      routingKey: operation.pattern,
      body: Buffer.from(JSON.stringify(body)),
      properties: messageProperties(operation, options, this.sender, correlationId, { replyTo: this.replyQueue, timeoutMs }),
    });
  }

  /** After a lost channel: the outcome of its commands is unknown, and its queries are asked again. */
  private async recover(): Promise<void> {
    this.calls.rejectAll(
      () => outcomeUnknown('the connection was lost before the answer came'),
      (correlationId) => this.queries.has(correlationId) || this.waiting.has(correlationId),
    );
    if (await this.channel.whenReady(this.lostAt + FAILOVER_MS - performance.now())) this.queries.askAllAgain();
    else this.queries.giveUp('the connection was lost');
  }

  private reportPending(): void {
    this.connection.observer.pending(this.options.appId, this.calls.size);
  }
}
