import { setTimeout as sleep } from 'node:timers/promises';
import { Server, type CustomTransportStrategy, type MessageHandler } from '@nestjs/microservices';
import type { ConsumeMessage } from 'amqplib';
import type { Registry } from 'prom-client';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import type { ServiceName } from '@app/contracts/message';
import type { Acks } from './acks';
import { decide } from './ack-policy';
import { closeQuietly } from '@app/amqp/channel';
import { RabbitConnection, type ConnectionOptions } from '@app/amqp/connection';
import { about, Delivery, type Lane, type QueueKind } from './delivery';
import { readEnvelope } from './envelope';
import { checkHandlers } from './handler-check';
import { HandlerRunner } from './handler-runner';
import { TransportMetrics } from './metrics';
import { observe } from './observe';
import { Pause } from './pause';
import { Publishers, type PublisherRules } from './publishers';
import { QueueConsumer } from './queue-consumer';
import { Settlement } from './settlement';
import { within } from '@app/amqp/within';
import { commandQueue, deadQueue, eventQueue, queryQueue, RETRY_DELAYS, retryQueue, suspectQueue } from './topology';

export type { QueueKind } from './delivery';

export interface RabbitServerOptions {
  /** The name is the prefix of two: consuming and publishing are apart, because a broker short of memory blocks publishers. */
  connection: ConnectionOptions;
  service: ServiceName;
  /** Which of the service's queues this process consumes. */
  queues: readonly QueueKind[];
  /** Most deliveries handled at once, for each queue. */
  prefetch: Readonly<Record<'commands' | 'queries', number> & { events?: number }>;
  /** Whether an error says that the database is away. Needs `probe`. */
  isUnavailable?: (error: unknown) => boolean;
  /** Whether an error says that the handler did nothing and may succeed when tried again. */
  isTransient?: (error: unknown) => boolean;
  /** Resolves when the database is back, rejects while it is not; either within seconds. */
  probe?: () => Promise<void>;
  /** Who may publish for which tenant; absent: whoever the broker lets publish, for all. */
  publishers?: PublisherRules;
  /** Tries of a command that nobody waits for before it goes to the dead letters. Default 8, over 20 minutes. */
  maxAttempts?: number;
  /** How long close() waits for running handlers, in milliseconds. Default 10,000. */
  drainTimeoutMs?: number;
  /** Default: prom-client's own register. */
  metrics?: Registry;
}

const CANCEL_TIMEOUT_MS = 2000;
const UNEXPECTED_PAUSE_MS = 1000;
const DEFAULT_EVENT_PREFETCH = 16;
/** How long commands wait after a suspect for the next one, in milliseconds. */
const QUIET_MS = 50;

/** Nest transport: consumes the service's queues. Handlers are ordinary `@MessagePattern` methods. */
export class RabbitServer extends Server implements CustomTransportStrategy {
  private readonly metrics: TransportMetrics;
  private readonly consuming: RabbitConnection;
  private readonly publishing: RabbitConnection;
  private readonly settlement: Settlement;
  private readonly pause: Pause;
  private readonly runner: HandlerRunner;
  private readonly patterns: string[] = [];
  private readonly running: Record<Lane, Set<Promise<void>>> = {
    commands: new Set(),
    events: new Set(),
    suspects: new Set(),
    queries: new Set(),
  };
  private readonly consumers = new Map<Lane, QueueConsumer>();
  private quiet?: NodeJS.Timeout;
  private closed?: Promise<void>;

  /** @throws Error when the broker's URL is not one, or `probe` is missing */
  constructor(readonly options: RabbitServerOptions) {
    super();
    const { connection, service, isUnavailable, isTransient, probe, publishers } = options;
    if (isUnavailable && !probe) throw new Error('isUnavailable needs a probe: without it a pause would never end.');
    this.metrics = TransportMetrics.of(options.metrics);
    const observer = observe(this.metrics);
    this.consuming = new RabbitConnection({ ...connection, name: `${connection.name} consuming` }, observer);
    this.publishing = new RabbitConnection({ ...connection, name: `${connection.name} publishing` }, observer);
    this.settlement = new Settlement(service, this.publishing, this.metrics);
    this.runner = new HandlerRunner(
      this.messageHandlers,
      isUnavailable,
      isTransient,
      publishers && new Publishers(publishers, this.consuming.username),
    );
    this.pause = new Pause(probe ?? (async () => undefined), (paused) => this.onPause(paused));
  }

  override addHandler(
    pattern: string,
    callback: MessageHandler,
    isEventHandler?: boolean,
    extras?: Record<string, unknown>,
  ): void {
    this.patterns.push(this.normalizePattern(pattern));
    super.addHandler(pattern, callback, isEventHandler, extras);
  }

  /** Checks the handlers and starts to connect; does not wait for the broker: see {@link check}. */
  listen(callback: (error?: unknown) => void): void {
    try {
      checkHandlers(this.options.service, this.patterns);
    } catch (error) {
      return callback(error);
    }
    const lanes = this.options.queues.flatMap((kind): Lane[] => (kind === 'commands' ? ['commands', 'suspects'] : [kind]));
    for (const lane of lanes) this.consumers.set(lane, this.consumerOf(lane));
    this.publishing.start();
    this.consuming.start();
    callback();
  }

  /** Stops consuming, lets running handlers finish, flushes replies and acks, disconnects. */
  close(): Promise<void> {
    return (this.closed ??= this.drain());
  }

  /** undefined when every queue is consumed and replies can be sent, else a short reason without secrets. */
  check(): string | undefined {
    if (this.pause.active) return 'the database is away';
    return [...this.consumers.values()].map((consumer) => consumer.check()).find(Boolean) ?? this.settlement.check();
  }

  on(): never {
    throw new Error('RabbitServer has no events: use check() and the metrics.');
  }

  unwrap<T>(): T {
    return this.consuming.current as T;
  }

  private consumerOf(lane: Lane): QueueConsumer {
    const { service, prefetch } = this.options;
    const failing = [deadQueue(service), suspectQueue(service), ...RETRY_DELAYS.map((delay) => retryQueue(service, delay))];
    return new QueueConsumer(this.consuming, {
      queue: { commands: commandQueue, events: eventQueue, suspects: suspectQueue, queries: queryQueue }[lane](service),
      needs: lane === 'queries' ? [] : failing,
      prefetch: lane === 'suspects' ? 1 : (prefetch[lane] ?? DEFAULT_EVENT_PREFETCH),
      onDelivery: (message, acks) => this.receive(lane, message, acks),
    });
  }

  private receive(lane: Lane, message: ConsumeMessage, acks: Acks): void {
    const work = this.handle(lane, message, acks).finally(() => {
      this.running[lane].delete(work);
      this.metrics.deliveriesInFlight.dec({ queue: lane });
    });
    this.running[lane].add(work);
    this.metrics.deliveriesInFlight.inc({ queue: lane });
  }

  private async handle(lane: Lane, message: ConsumeMessage, acks: Acks): Promise<void> {
    let delivery: Delivery | undefined;
    try {
      delivery = new Delivery(lane, message, readEnvelope(message, isTenantless), acks);
      await (lane === 'suspects' ? this.handleAlone(delivery) : this.handleUntilSettled(delivery));
    } catch (error) {
      // Nothing in there is meant to throw. The message is kept, and comes back slowly.
      this.logger.error({
        msg: 'a delivery could not be settled',
        stack: (error as Error).stack,
        ...(delivery && about(delivery)),
      });
      await sleep(UNEXPECTED_PAUSE_MS);
      if (delivery) delivery.requeue();
      else closeQuietly(acks.channel);
    }
  }

  /** With no other command in this process: if it ends the process, nothing else is counted as delivered in vain. */
  private async handleAlone(delivery: Delivery): Promise<void> {
    const others = (['commands', 'events'] as const).flatMap((lane) => this.consumers.get(lane) ?? []);
    clearTimeout(this.quiet);
    await Promise.all(others.map((consumer) => consumer.pause('suspect')));
    await Promise.allSettled([...this.running.commands, ...this.running.events]);
    try {
      await this.handleUntilSettled(delivery);
    } finally {
      // The next suspect, if there is one, comes at once.
      this.quiet = setTimeout(() => others.forEach((consumer) => void consumer.resume('suspect')), QUIET_MS);
    }
  }

  private async handleUntilSettled(delivery: Delivery): Promise<void> {
    const { kind, context } = delivery;
    const { awaited, attempt, pattern } = context;
    for (;;) {
      if (kind === 'commands' && this.pause.active) await this.pause.begin();
      if (delivery.isForgotten || (this.closed && kind === 'commands' && this.pause.stopped)) return;

      const outcome = await this.runner.outcomeOf(delivery);
      const { maxAttempts = 8 } = this.options;
      const decision = decide(outcome, { kind, awaited, attempt, maxAttempts, mayHaveRun: delivery.mayHaveRun });
      if (decision.do !== 'hold') {
        return this.settlement.settle(delivery, decision, this.messageHandlers.has(pattern) ? pattern : 'unknown');
      }
      delivery.mayHaveRun = true;
      void this.pause.begin();
    }
  }

  private onPause(paused: boolean): void {
    this.logger.warn({ msg: paused ? 'commands are not consumed until the database is back' : 'commands are consumed again' });
    for (const lane of ['commands', 'events', 'suspects'] as const) {
      const consumer = this.consumers.get(lane);
      void (paused ? consumer?.pause('database') : consumer?.resume('database'));
    }
  }

  private async drain(): Promise<void> {
    const consumers = [...this.consumers.values()];
    await within(CANCEL_TIMEOUT_MS, Promise.all(consumers.map((consumer) => consumer.pause('closing'))));
    this.pause.stop();
    const running = () => Object.values(this.running).flatMap((works) => [...works]);
    const drained = await within(this.options.drainTimeoutMs ?? 10_000, Promise.allSettled(running()));
    if (!drained)
      this.logger.warn({ msg: 'handlers still run: the broker will deliver their messages again', count: running().length });
    clearTimeout(this.quiet);
    this.settlement.stopWaiting();
    await Promise.all([this.settlement.close(), ...consumers.map((consumer) => consumer.close())]);
    await Promise.all([this.consuming.close(), this.publishing.close()]);
  }
}

const TENANTLESS = new Set(ALL_MESSAGES.filter(({ tenantless }) => tenantless).map(({ pattern }) => pattern));
const isTenantless = (pattern: string) => TENANTLESS.has(pattern);
