import type { Span } from '@opentelemetry/api';
import type { Registry } from 'prom-client';
import { Caller } from '@app/amqp/calls/caller';
import { RabbitConnection, type ConnectionOptions, type ConnectionState } from '@app/amqp/connection/connection';
import type { SendOptions } from '@app/amqp/messages/message-properties';
import type { Answer } from '@app/amqp/messages/reply-format';
import { ApiError } from '@app/contracts/error';
import type { CallerName, Message } from '@app/contracts/message';
import type { TraceHeaders } from '@app/tracing/trace-context';
import { activeSpan, endFailed, headersOf } from '@app/tracing/tracing';
import { TransportMetrics } from '../metrics';
import { observe } from '../observe';
import { startCall } from '../spans';
import { STANDBY_EXCHANGE } from '../topology/topology';

export type { Answer } from '@app/amqp/messages/reply-format';

export interface CallOptions extends Omit<SendOptions, 'trace'> {
  /** Parent of the span of the call. Default: the active span. */
  span?: Span;
}

const MAX_PENDING = 1000;

export interface RabbitClientOptions {
  /** The name is the name of the app, and is the `app_id` of every message. */
  connection: ConnectionOptions;
  /** The process whose declared rights count, and every message that it calls. Default: any message, for tests. */
  calls?: { as: CallerName; messages: readonly Message<object, object>[] };
  /** Where calls are published. Default `calls`, to which only the gateway and the services may publish. */
  exchange?: 'calls' | 'commands';
  /** Most calls waiting for their reply; more are refused at once. Default 1000. */
  maxPending?: number;
  /** How long close() waits for pending calls, in milliseconds. Default 10,000. */
  drainTimeoutMs?: number;
  /** Default: the global register of prom-client. */
  metrics?: Registry;
}

/** Calls services over the broker. */
export class RabbitClient {
  private readonly metrics: TransportMetrics;
  private readonly connection: RabbitConnection;
  private readonly caller: Caller;
  private closed?: Promise<void>;

  /** @throws Error when the broker's URL is invalid, or the declaration of a message does not name the process among its callers */
  constructor(readonly options: RabbitClientOptions) {
    const { connection, maxPending = MAX_PENDING, exchange = 'calls', calls } = options;
    if (calls) requireRights(calls);
    this.metrics = TransportMetrics.of(options.metrics);
    this.metrics.callsPendingLimit.set({ connection: connection.name }, maxPending);
    this.connection = new RabbitConnection({ ...connection, name: `${connection.name} calling` }, observe(this.metrics));
    const standbyExchange = exchange === 'calls' ? STANDBY_EXCHANGE : undefined;
    const warmUp = oneForEachQueue(calls?.messages ?? []);
    const batches = exchange === 'calls';
    this.caller = new Caller(this.connection, { appId: connection.name, maxPending, exchange, standbyExchange, batches, warmUp });
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
    return this.caller.pending;
  }

  get state(): ConnectionState {
    return this.connection.state;
  }

  /** undefined when calls can be made, else a short reason without secrets. */
  check(): string | undefined {
    return this.caller.check();
  }

  /** Waits until calls can be made. @returns false after `timeoutMs` milliseconds, or when the client is closed */
  whenReady(timeoutMs: number): Promise<boolean> {
    return this.caller.whenReady(timeoutMs);
  }

  /**
   * Publishes a message and waits for its reply.
   *
   * @throws ApiError UNAVAILABLE: not executed, and never will be. DEADLINE_EXCEEDED: written, and the outcome is unknown. Any other status is
   *   the service's answer
   */
  async call<Req, Res>(message: Message<Req, Res>, body: Req, options: CallOptions): Promise<Answer<Res>> {
    this.requireDeclared(message);
    const { pattern } = message;
    const finish = this.metrics.calls.startTimer({ message: pattern });
    const span = startCall(this.options.exchange ?? 'calls', pattern, (options.span ?? activeSpan())?.spanContext());
    try {
      const trace = headersOf(span);
      const sent = trace ? withTrace(options, trace) : options;
      const answer = await this.caller.call<Res>(message, body, sent);
      finish({ status: 'OK' });
      span?.end();
      return answer;
    } catch (error) {
      const status = error instanceof ApiError ? error.status : 'INTERNAL';
      finish({ status });
      endFailed(span, status);
      throw error;
    }
  }

  private requireDeclared({ pattern }: { pattern: string }): void {
    const { calls } = this.options;
    if (calls && !calls.messages.some((message) => message.pattern === pattern))
      throw new Error(`${pattern} is not among the messages that ${calls.as} calls.`);
  }

  private async drain(): Promise<void> {
    await this.caller.close(this.options.drainTimeoutMs ?? 10_000);
    await this.connection.close();
  }
}

/** Field by field: a copy of a copy by spreads has a hidden class of its own, as write-message.ts explains. */
function withTrace(options: CallOptions, trace: TraceHeaders): SendOptions {
  const { apiKey, requestId, timeoutMs, messageId, idempotencyKey } = options;
  return { apiKey, requestId, timeoutMs, messageId, idempotencyKey, trace };
}

function requireRights({ as, messages }: NonNullable<RabbitClientOptions['calls']>): void {
  const missing = messages.filter(({ callers }) => !callers.includes(as)).map(({ pattern }) => pattern);
  if (missing.length > 0)
    throw new Error(`The broker refuses ${missing.join(', ')} of ${as}: its declaration does not name ${as} among its callers.`);
}

/** The queries of a service have one queue, and so have its commands. */
function oneForEachQueue(messages: readonly Message<object, object>[]): Message<object, object>[] {
  return [...new Map(messages.map((message) => [`${message.service} ${message.kind}`, message])).values()];
}
