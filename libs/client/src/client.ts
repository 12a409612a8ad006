import { randomUUID } from 'node:crypto';
import type { ConfirmChannel } from 'amqplib';
import { notPublished, outcomeUnknown } from '@app/amqp/calls/call-errors';
import { Caller } from '@app/amqp/calls/caller';
import { RabbitChannel } from '@app/amqp/connection/channel';
import { checkExchanges } from '@app/amqp/connection/check-topology';
import { RabbitConnection } from '@app/amqp/connection/connection';
import { messageProperties } from '@app/amqp/messages/message-properties';
import { silent, type Observer } from '@app/amqp/connection/observer';
import { allAnswered, ConfirmedPublisher, NotWritten } from '@app/amqp/publishing/publisher';
import { within } from '@app/runtime/within';
import { ApiError } from '@app/contracts/error';
import { attempt, type Attempts } from './attempts';
import type { ListenOptions } from './listen-options';
import { Listener } from './listener';
import type { Commands, Operations } from './operations';
import { RunningWork } from './running-work';
import { operationOf, readOptions, type Called, type SendOptions } from './send-options';

export { ApiError } from '@app/contracts/error';
export type { ErrorStatus, FieldProblem } from '@app/contracts/error';
export type { CloudEvent } from '@app/contracts/event';
export type { Events, EventType, Handlers } from './events';
export type { ListenOptions } from './listen-options';
export type { Listener } from './listener';
export type { Commands, Operations, Queries } from './operations';
export type { Called, SendOptions } from './send-options';

/**
 * A logger such as console or pino. It gets lost connections and failed handlers; never payloads, tenants or connection strings. Errors of the
 * logger are ignored.
 */
export interface Logger {
  info(fields: object): void;
  warn(fields: object): void;
  error(fields: object): void;
}

export interface ClientOptions {
  /** RabbitMQ with the account of your service: `amqp:`, or `amqps:` for TLS. */
  url: string;
  /** PEM file of the authorities that sign the broker's certificate. Default: the authorities of the system. Read for each connection. */
  caFile?: string | undefined;
  /** PEM files of the own certificate and its key, for a broker that demands them. Read for each connection. */
  certFile?: string | undefined;
  keyFile?: string | undefined;
  /** Name of your service: the `app_id` of every message, and part of the connection names in the broker. At most 200 bytes. */
  name: string;
  /** Default tenant. */
  apiKey?: string | undefined;
  /** Default time from a call to its deadline, in milliseconds. Default 5000. */
  timeoutMs?: number | undefined;
  /** Exchange for commands and calls, as printed by the operator's tool when it created the account. Default `commands`. */
  exchange?: string | undefined;
  /** Most calls waiting for their reply; more fail with UNAVAILABLE. Default 1000. */
  maxPending?: number | undefined;
  /** Default: no logger. */
  logger?: Logger | undefined;
}

const MAX_NAME_BYTES = 200;

/** Of a connection. */
type Purpose = 'publishing' | 'listening';

/**
 * Publishes commands, calls operations and listens to events, over connections that reconnect by themselves. One client for a process is enough. It
 * connects on first use.
 */
export class CollaborationClient {
  private readonly publishing: RabbitConnection;
  /** A separate connection, because a broker short of memory reads nothing from a publishing connection, not even acknowledgements. */
  private readonly consuming: RabbitConnection;
  private readonly channel: RabbitChannel<ConfirmChannel>;
  private readonly publisher: ConfirmedPublisher;
  private readonly exchange: string;
  private readonly listeners = new Set<Listener>();
  private readonly running = new RunningWork();
  private readonly closing = new AbortController();
  private caller?: Caller;
  private readonly lastProblems: { [purpose in Purpose]?: string } = {};
  private closed?: Promise<void>;

  /** @throws Error when the URL is not a valid broker URL (without quoting it); RangeError for another invalid option */
  constructor(private readonly options: ClientOptions) {
    const { url, name = '', caFile, certFile, keyFile, maxPending = 1 } = options;
    if (!(maxPending >= 1)) throw new RangeError('maxPending must be at least 1.');
    if (name === '' || Buffer.byteLength(name) > MAX_NAME_BYTES) throw new RangeError('name must have 1 to 200 bytes.');
    const tlsFiles = { caFile, certFile, keyFile };
    const connection = (purpose: Purpose) => {
      try {
        return new RabbitConnection({ url, tlsFiles, name: `${name} ${purpose}` }, this.observer(purpose));
      } catch (error) {
        throw new Error(`url ${(error as Error).message}`, { cause: error });
      }
    };
    this.exchange = options.exchange ?? 'commands';
    this.publishing = connection('publishing');
    this.consuming = connection('listening');
    this.channel = new RabbitChannel(this.publishing, {
      name: 'commands',
      open: (model) => model.createConfirmChannel(),
      setup: (channel) => checkExchanges(channel, [this.exchange]),
      drain: allAnswered,
    });
    this.publisher = new ConfirmedPublisher(this.channel);
  }

  /**
   * Publishes a command without waiting for its reply. Resolves when the broker has it on disk and in its queue. If it cannot be executed later,
   * it becomes a dead letter. Until the deadline it is published again, with the same message id, while it is not certain that the broker has it.
   *
   * @returns its message id, which is the id of a notification without `notificationId`, unless the `idempotencyKey` was used before
   * @throws ApiError UNAVAILABLE: the broker does not have it. DEADLINE_EXCEEDED: the broker may have it. PERMISSION_DENIED: the account may not
   *   publish this operation. INVALID_ARGUMENT: the body or an option cannot be sent, or it is a query or no operation
   */
  async publish<Name extends keyof Commands>(
    name: Name,
    body: Commands[Name]['request'],
    options: SendOptions = {},
  ): Promise<{ messageId: string }> {
    const operation = operationOf(name);
    // JavaScript has no types: the broker would confirm it, and the service drop it.
    if (operation.kind === 'query') throw new ApiError('INVALID_ARGUMENT', `${name} is a query: call it.`);
    const { timeoutMs, content, ...sent } = readOptions(operation, body, options, this.options);
    this.start(this.publishing);
    const sender = { appId: this.options.name, userId: this.publishing.username };
    const once = async (left: number) => {
      const properties = messageProperties(operation, sent, sender, randomUUID());
      let error: ApiError | undefined = outcomeUnknown('the broker has not confirmed it in time');
      const confirm = this.publisher
        .publish({ exchange: this.exchange, routingKey: name, toQuorumQueue: true, body: content, properties })
        .then(notPublished, notWritten)
        .then((found) => (error = found));
      await within(left, confirm);
      if (error) throw error;
    };
    await this.running.add(content, () => attempt(this.attempts(timeoutMs, this.channel), once));
    return { messageId: sent.messageId };
  }

  /**
   * Publishes a command or a query and waits for its reply. Until the deadline it is repeated, with the same message id, while the broker or the
   * service is away. After the deadline it is not executed any more.
   *
   * @returns the result, the message id, and the id of the stored notification, which is that of the first call for a used `idempotencyKey`
   * @throws ApiError UNAVAILABLE: nothing was done, and nothing will be. DEADLINE_EXCEEDED: unknown; final one second after the deadline. Any
   *   other status is the service's answer, as over HTTP
   */
  async call<Name extends keyof Operations>(
    name: Name,
    body: Operations[Name]['request'],
    options: SendOptions = {},
  ): Promise<Called<Name>> {
    const operation = operationOf(name);
    const { timeoutMs, content, ...sent } = readOptions(operation, body, options, this.options);
    this.start(this.publishing);
    const { name: appId, maxPending } = this.options;
    const caller = (this.caller ??= new Caller(this.publishing, { appId, maxPending, exchange: this.exchange }));
    const answer = await this.running.add(content, () =>
      attempt(this.attempts(timeoutMs, caller), (left) =>
        caller.call<Operations[Name]['result']>(operation, content, { ...sent, timeoutMs: left }),
      ),
    );
    const notificationId = answer.headers['x-notification-id'] as Called<Name>['notificationId'];
    return { result: answer.parse(), messageId: sent.messageId, notificationId };
  }

  /**
   * Listens to events in its own durable queue. Several processes with the same queue share its events.
   *
   * @returns the listener, once it consumes
   * @throws ApiError UNAVAILABLE with the reason when it does not consume in time; RangeError for an invalid option
   */
  async listen(options: ListenOptions): Promise<Listener> {
    for (const connection of [this.publishing, this.consuming]) this.start(connection);
    const listener = new Listener(this.consuming, this.publisher, options, () => this.listeners.delete(listener));
    this.listeners.add(listener);
    try {
      await listener.ready();
      return listener;
    } catch (error) {
      await listener.close(0);
      throw this.explained('listening', error as ApiError);
    }
  }

  /** For readiness: undefined when all connections used so far work, else a short reason without secrets. It is a use, too. */
  check(): string | undefined {
    if (this.closed) return 'closed';
    // A process may get no work before it is ready, and would never connect.
    this.publishing.start();
    const listening = [...this.listeners].filter((listener) => !listener.isClosed);
    return [this.channel, this.caller, ...listening].map((one) => one?.check()).find((problem) => problem !== undefined);
  }

  /** Takes no more events and, when all handlers have ended, no other work. Waits up to `drainTimeoutMs` milliseconds for running work, and disconnects. */
  close(drainTimeoutMs = 10_000): Promise<void> {
    return (this.closed ??= this.drain(drainTimeoutMs));
  }

  private async drain(drainTimeoutMs: number): Promise<void> {
    const until = performance.now() + drainTimeoutMs;
    await Promise.all([...this.listeners].map((listener) => listener.close(drainTimeoutMs)));
    // Not before: running handlers publish and call.
    this.closing.abort();
    await within(until - performance.now(), this.running.ended());
    await Promise.all([this.caller?.close(0), this.channel.close()]);
    await Promise.all([this.publishing.close(), this.consuming.close()]);
  }

  private start(connection: RabbitConnection): void {
    const isClosed = this.closing.signal.aborted || (this.closed && connection === this.consuming);
    if (isClosed) throw new ApiError('UNAVAILABLE', 'The client is closed; nothing was done.');
    connection.start();
  }

  private attempts(timeoutMs: number, channel: Pick<Caller, 'whenReady' | 'check'>): Attempts {
    return {
      timeoutMs,
      signal: this.closing.signal,
      whenReady: (left) => channel.whenReady(left),
      whyNot: () =>
        this.explained('publishing', new ApiError('UNAVAILABLE', channel.check() ?? 'The client is closed; nothing was done.')),
    };
  }

  /** Adds the broker's message, which names a missing permission or a wrong password. */
  private explained(purpose: Purpose, error: ApiError): ApiError {
    const reason = this.lastProblems[purpose] ?? (error.cause as Error | undefined)?.message ?? error.message;
    return new ApiError(error.status, `The broker cannot be used; nothing was done: ${reason}`);
  }

  private observer(purpose: Purpose): Observer {
    return {
      ...silent,
      log: (level, fields) => {
        // A failed handler is no reason why the broker cannot be used.
        if ('connection' in fields) this.lastProblems[purpose] = level === 'info' ? undefined : fields.msg;
        // An error of the logger would end a connection or the process, or leave an event unsettled.
        new Promise((resolve) => resolve(this.options.logger?.[level](fields))).catch(() => undefined);
      },
    };
  }
}

const notWritten = (error: unknown): ApiError => {
  if (!(error instanceof NotWritten)) throw error;
  return new ApiError('UNAVAILABLE', `The broker cannot be used; nothing was done: ${error.message}`);
};
