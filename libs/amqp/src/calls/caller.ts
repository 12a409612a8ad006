import { randomUUID } from 'node:crypto';
import type { Channel, ConfirmChannel, Message as AmqpMessage } from 'amqplib';
import { ApiError, PASSING } from '@app/contracts/error';
import { outcomeUnknown, unavailable } from './call-errors';
import { CallChannels } from './call-channels';
import { RabbitChannel } from '../connection/channel';
import { commandMessage } from '../messages/command-format';
import { Commands } from './commands';
import type { RabbitConnection } from '../connection/connection';
import { newMessageId } from '../messages/message-id';
import { messageProperties, type SendOptions, type Operation, type Request, type Sender } from '../messages/message-properties';
import { PendingCalls } from './pending-calls';
import { ConfirmedPublisher, type PublishOutcome } from '../publishing/publisher';
import { Queries } from './queries';
import { decodeReply, repliesIn, type Answer, type ReceivedReply } from '../messages/reply-format';
import { WaitingCalls } from './waiting-calls';
import { within } from '@app/runtime/within';

export interface CallerOptions {
  /** The `app_id` of every message. */
  appId: string;
  /** Most calls waiting for their reply; more are refused at once. Default 1000. */
  maxPending?: number;
  /** Exchange for the messages; the account needs write permission. Default `commands`. */
  exchange?: string;
  /** Exchange for queries while the queue behind `exchange` is on a broker node that is away. Default: none, and queries fail meanwhile. */
  standbyExchange?: string;
  /** Whether several commands may share a message. Only services of this system read such messages, and only from exchange `calls`. */
  batches?: boolean;
  /** One operation for each queue that is called. Each new channel publishes them once, without effect: see call-channels.ts. */
  warmUp?: readonly Operation[];
}

/** Publishes commands and queries, and waits for their replies in its own reply queue. */
export class Caller {
  private readonly channels: CallChannels;
  private readonly channel: RabbitChannel<ConfirmChannel>;
  private readonly publisher: ConfirmedPublisher;
  private readonly calls = new PendingCalls();
  private readonly sender: Sender;
  private readonly exchange: string;
  private readonly queries: Queries;
  private readonly commands: Commands;
  private readonly waiting: WaitingCalls;
  private closed = false;
  /** Time of the latest reply, or of {@link bindAgain}, in milliseconds of `performance.now()`. */
  private heardAt = -Infinity;
  /** Whether no reply has come since {@link bindAgain}: a log line of it is enough. */
  private isUnanswered = false;

  constructor(
    private readonly connection: RabbitConnection,
    private readonly options: CallerOptions,
  ) {
    this.exchange = options.exchange ?? 'commands';
    this.sender = { appId: options.appId, userId: connection.username };
    this.channels = new CallChannels({ ...options, exchange: this.exchange, sender: this.sender });
    this.channel = new RabbitChannel(connection, {
      name: 'calls',
      open: (model) => model.createConfirmChannel(),
      setup: (channel) => {
        // Deferred, so that calls that were certainly refused are rejected with that reason first.
        channel.once('close', () => setImmediate(() => void this.recover(channel)));
        return this.channels.setUp(channel, (reply) => this.onReply(reply));
      },
      // The answers come over the channel that the call was written to.
      drain: (earlier) => this.calls.endOf(this.calls.writtenTo(earlier)),
    });
    this.channel.on('lost', () => {
      this.waiting.lost();
      for (const command of this.commands.takeUnsent()) void this.waiting.add(command);
    });
    this.waiting = new WaitingCalls(this.channel, this.calls, (request) => this.begin(request));
    connection.on('state', (state) => this.onState(state === 'blocked'));
    this.publisher = new ConfirmedPublisher(this.channel);
    const reject = (correlationId: string, error: Error) => this.calls.reject(correlationId, error);
    this.queries = new Queries(
      {
        publish: (...copy) => this.publishQuery(...copy),
        reject,
        repeated: (pattern, reason) => connection.observer.repeated(pattern, reason),
        isWaiting: () => this.waiting.isAlarm,
      },
      this.exchange,
      options.standbyExchange,
    );
    this.commands = new Commands(
      {
        publish: (commands, correlationId) => this.publishCommands(commands, correlationId),
        reject,
        unread: (pattern) => connection.observer.log('warn', { msg: 'a consumer reads one command in a message only', pattern }),
      },
      options.batches ? undefined : 1,
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
   * @param body a value, or its JSON as bytes
   * @throws ApiError UNAVAILABLE: not executed, and never will be. DEADLINE_EXCEEDED: written, and the outcome is unknown. Any other status is
   *   the service's answer
   */
  async call<Res>(operation: Operation, body: unknown, options: SendOptions): Promise<Answer<Res>> {
    const correlationId = randomUUID();
    try {
      return decodeReply<Res>(await this.replyTo(operation, body, options, correlationId));
    } catch (error) {
      const doubtful = error instanceof ApiError && PASSING.has(error.status) && this.commands.isRepeated(correlationId);
      throw doubtful ? outcomeUnknown('an earlier message with it may have been handled') : error;
    } finally {
      this.queries.forget(correlationId);
      this.commands.forget(correlationId);
      this.reportPending();
    }
  }

  /** Refuses new calls, and waits up to `drainTimeoutMs` milliseconds for the pending ones. */
  async close(drainTimeoutMs: number): Promise<void> {
    this.closed = true;
    await within(drainTimeoutMs, this.calls.whenEmpty());
    this.calls.rejectAll((correlationId) => this.unanswered(correlationId, 'shutting down', 'shutting down'));
    await this.channel.close();
  }

  private get replyQueue(): string | undefined {
    return this.channels.replyQueueOf(this.channel.current);
  }

  private onReply(message: AmqpMessage): void {
    this.heardAt = performance.now();
    this.isUnanswered = false;
    for (const { correlationId, reply } of repliesIn(message))
      if (!this.calls.resolve(this.queries.answered(correlationId), reply) && !this.commands.refused(correlationId))
        this.connection.observer.unknownReply();
  }

  /**
   * No call was answered during the whole time of one. The binding of the reply queue goes with its exchange, and nobody notices when somebody declares
   * that again at once.
   */
  private bindAgain(): void {
    this.heardAt = performance.now();
    const { current: model, observer } = this.connection;
    const { current: channel } = this.channel;
    if (!model || !channel) return;
    const { appId } = this.options;
    if (!this.isUnanswered)
      observer.log('warn', { msg: 'no call was answered: the reply queue is bound again, in case that is the reason', appId });
    this.isUnanswered = true;
    void this.channels.bindAgain(model, channel).catch((error: unknown) => {
      observer.log('warn', { msg: 'the reply queue could not be bound again', appId, reason: (error as Error).message });
    });
  }

  private replyTo(operation: Operation, body: unknown, options: SendOptions, correlationId: string): Promise<ReceivedReply> {
    const timeoutMs = Math.floor(options.timeoutMs);
    if (this.closed) throw unavailable('shutting down');
    if (this.calls.size >= (this.options.maxPending ?? 1000)) throw unavailable('too many calls are pending');
    if (!(timeoutMs > 0)) throw unavailable('no time is left');
    // First, because what has no JSON must leave no pending call.
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));

    const askedAt = performance.now();
    const reply = this.calls.wait(correlationId, timeoutMs, () => {
      if (this.heardAt < askedAt) this.bindAgain();
      return this.unanswered(correlationId, 'the broker did not take it in time', 'no answer came in time');
    });
    this.reportPending();
    const request: Request = {
      operation,
      body: bytes,
      options: { ...options, messageId: options.messageId ?? newMessageId() },
      correlationId,
      deadline: askedAt + timeoutMs,
    };
    if (this.channel.check() === undefined) this.begin(request);
    else void this.waiting.add(request);
    return reply;
  }

  private begin(request: Request): void {
    if (request.operation.kind === 'query') this.queries.ask(request);
    else this.commands.ask(request);
  }

  private onState(isAlarmed: boolean): void {
    if (!this.waiting.alarm(isAlarmed)) return;
    if (isAlarmed) for (const command of this.commands.takeUnsent()) void this.waiting.add(command);
    else for (const asked of [this.commands, this.queries]) asked.restart();
  }

  /** The error of a call that is given up. Nothing of it is written from now on. */
  private unanswered(correlationId: string, whyUnsent: string, why: string): ApiError {
    return this.calls.isUnwritten(correlationId) ? unavailable(whyUnsent) : outcomeUnknown(why);
  }

  private publishQuery(exchange: string, query: Request, correlationId: string, timeoutMs: number): Promise<PublishOutcome> {
    const { operation, body, options } = query;
    const properties = messageProperties(operation, options, this.sender, correlationId, { replyTo: this.replyQueue, timeoutMs });
    const toQuorumQueue = exchange === this.options.standbyExchange;
    this.calls.written([query], this.channel.current);
    return this.publisher.publish({ exchange, routingKey: operation.pattern, toQuorumQueue, body, properties });
  }

  private publishCommands(commands: readonly Request[], correlationId: string): Promise<PublishOutcome> {
    const { pattern } = commands[0].operation;
    const message = commandMessage(commands, correlationId, this.sender, this.replyQueue);
    this.calls.written(commands, this.channel.current);
    const outcome = this.publisher.publish({ exchange: this.exchange, routingKey: pattern, toQuorumQueue: true, ...message });
    this.connection.observer.sent(this.exchange, commands, outcome);
    return outcome;
  }

  /**
   * A channel has ended, the latest or one that was replaced: the outcome of its commands is unknown, and its queries are asked again. A query may have
   * copies on another channel, too. Asking twice is harmless.
   */
  private async recover(ended: Channel): Promise<void> {
    const written = this.calls.writtenTo(ended);
    for (const id of written)
      if (!this.queries.has(id)) this.calls.reject(id, outcomeUnknown('the connection was lost before the answer came'));
    if (await this.waiting.untilReady()) this.queries.askAgain(written);
    else this.queries.giveUp(written, 'the connection was lost');
  }

  private reportPending(): void {
    this.connection.observer.pending(this.options.appId, this.calls.size);
  }
}
