import { setTimeout as sleep } from 'node:timers/promises';
import { Server, type CustomTransportStrategy, type MessageHandler } from '@nestjs/microservices';
import { closeQuietly } from '@app/amqp/connection/opened-channel';
import { within } from '@app/runtime/within';
import { decide, HOLD, type Decision, type FinalDecision, type Outcome } from '../settle/ack-policy';
import { consumedQueues, type ConsumedQueue, type QueueKind } from '../topology/consumed-queues';
import type { Part } from '../delivery/commands-of';
import { about, Delivery } from '../delivery/delivery';
import { readEnvelope } from '../delivery/envelope';
import { checkHandlers } from './handler-check';
import { HandlerRunner, isEvent } from './handler-runner';
import { HeldDeliveries } from '../settle/held-deliveries';
import { TransportMetrics } from '../metrics';
import { DatabasePause, LOG_LINES, type DatabaseState } from './database-pause';
import { PublisherRights } from './publisher-rights';
import type { RabbitServerOptions } from './rabbit-server-options';
import { endProcess, startProcess } from '../spans';
import { QueueLengths } from './queue-lengths';
import type { QueueConsumer } from '../delivery/queue-consumer';
import { ServerConnections } from './server-connections';
import { Solitude } from './solitude';
import { Turns } from './turns';

const CANCEL_TIMEOUT_MS = 2000;
/** Leaves connections to the database for commands and queries. */
const EVENT_PLACES = 8;
const UNEXPECTED_PAUSE_MS = 1000;

/** Nest transport: consumes the service's queues. Handlers are ordinary `@MessagePattern` methods. */
export class RabbitServer extends Server implements CustomTransportStrategy {
  private readonly metrics: TransportMetrics;
  private readonly connections: ServerConnections;
  private readonly pause: DatabasePause;
  private readonly runner: HandlerRunner;
  private readonly patterns: string[] = [];
  private readonly turns: Record<QueueKind, Turns>;
  private readonly running = new Set<Promise<void>>();
  private readonly consumers = new Map<ConsumedQueue, QueueConsumer>();
  private readonly held: HeldDeliveries;
  private readonly solitude: Solitude;
  private readonly lengths: QueueLengths;
  private closed?: Promise<void>;

  /** @throws Error when the broker's URL is invalid, or `probe` is missing */
  constructor(readonly options: RabbitServerOptions) {
    super();
    const { service, prefetch, isUnavailable, probe, publishers } = options;
    if (isUnavailable && !probe) throw new Error('isUnavailable needs a probe: without it a pause would never end.');
    this.metrics = TransportMetrics.of(options.metrics);
    this.held = new HeldDeliveries(this.consumers, this.metrics);
    this.connections = new ServerConnections(options, this.metrics, this.held);
    const { consuming } = this.connections;
    this.lengths = new QueueLengths(consuming, service, this.metrics);
    this.solitude = new Solitude(this.consumers, options.crashPauseMs);
    this.turns = {
      commands: new Turns('commands', this.metrics, prefetch.commands),
      queries: new Turns('queries', this.metrics, prefetch.queries),
      events: new Turns('events', this.metrics, EVENT_PLACES),
    };
    const rights = publishers && new PublisherRights(publishers, consuming.username);
    this.runner = new HandlerRunner(this.messageHandlers, options, rights);
    this.pause = new DatabasePause(probe ?? (async () => undefined), (state) => this.onDatabase(state));
  }

  override addHandler(pattern: string, ...rest: [MessageHandler, boolean?, Record<string, unknown>?]): void {
    this.patterns.push(this.normalizePattern(pattern));
    super.addHandler(pattern, ...rest);
  }

  /** Checks the handlers and starts to connect; does not wait for the broker: see {@link check}. */
  listen(callback: (error?: unknown) => void): void {
    try {
      checkHandlers(this.options.service, this.patterns);
    } catch (error) {
      return callback(error);
    }
    const { service, queues, prefetch } = this.options;
    this.metrics.beforeRead.add(this.lengths.look);
    const onChannelEnd = () => Object.values(this.turns).forEach((turns) => turns.dropForgotten());
    for (const queue of consumedQueues(service, queues, prefetch.commands)) {
      const onDelivery = (part: Part) => this.receive(queue, part);
      this.consumers.set(queue, this.connections.consumerOf(queue, onDelivery, onChannelEnd));
    }
    this.connections.start();
    callback();
  }

  /** Stops consuming, lets running handlers finish, flushes replies and acks, disconnects. */
  close(): Promise<void> {
    return (this.closed ??= this.drain());
  }

  /** undefined when every queue is consumed and replies can be sent, else a short reason without secrets. */
  check(): string | undefined {
    if (this.pause.active) return 'the database is away';
    const consumers = [...this.consumers.values()].map((consumer) => consumer.check());
    return consumers.find(Boolean) ?? this.connections.check() ?? this.held.check();
  }

  on(): never {
    throw new Error('RabbitServer has no events: use check() and the metrics.');
  }

  unwrap<T>(): T {
    return this.connections.consuming.current as T;
  }

  private receive(queue: ConsumedQueue, part: Part): void {
    const work = this.handle(queue, part).finally(() => {
      this.running.delete(work);
      this.metrics.deliveriesInFlight.dec({ queue: queue.name });
    });
    this.running.add(work);
    this.metrics.deliveriesInFlight.inc({ queue: queue.name });
    if (part.message.fields.redelivered) this.metrics.redeliveries.inc({ queue: queue.name });
  }

  private async handle(queue: ConsumedQueue, { message, acks }: Part): Promise<void> {
    const arrivedAt = performance.now();
    let delivery: Delivery | undefined;
    try {
      delivery = new Delivery(queue, message, readEnvelope(message), acks);
      const pattern = this.messageHandlers.has(delivery.context.pattern) ? delivery.context.pattern : 'unknown';
      delivery.context.span = startProcess(message, pattern, queue.name);
      if (await this.carryOut(delivery, pattern))
        this.metrics.deliverySeconds.observe({ pattern }, (performance.now() - arrivedAt) / 1000);
    } catch (error) {
      // Unexpected, because deciding and settling should not throw. The message is kept, and is redelivered after a pause.
      const { stack } = error as Error;
      this.logger.error({ msg: 'a delivery could not be settled', stack, ...(delivery && about(delivery)) });
      await sleep(UNEXPECTED_PAUSE_MS);
      if (delivery) delivery.requeue();
      else closeQuietly(acks.channel);
    } finally {
      // Unless it was settled: then the span has ended with the outcome.
      if (delivery) endProcess(delivery.context, 'requeued', '');
    }
  }

  /** A query keeps its place until its answer is written: answers that the broker does not take would fill the memory. */
  private async carryOut(delivery: Delivery, pattern: string): Promise<boolean | undefined> {
    const settle = async (decision: FinalDecision | undefined) => {
      if (!decision) return false;
      const settled = this.connections.settlementOf(delivery.queue).settle(delivery, decision, pattern);
      await (decision.do === 'suspectThenAck' ? this.solitude.move(settled) : settled);
      return true;
    };
    // Many of them would fill the memory while they wait for their turn.
    const tooLarge = this.runner.outcomeOfTooLarge(delivery);
    if (tooLarge) {
      this.observeAge(delivery);
      return settle(this.decisionOn(delivery, tooLarge) as FinalDecision);
    }
    if (delivery.queue.kind !== 'queries') return settle(await this.runCommand(delivery));
    return this.turns.queries.run(delivery, async () => settle(await this.runInTurn(delivery)));
  }

  /** @returns undefined when the delivery goes back to its queue with its channel */
  private async runCommand(delivery: Delivery): Promise<FinalDecision | undefined> {
    if (delivery.mayCrash) {
      const pauseMs = this.solitude.crashPause();
      // Its caller would be gone after the wait: nothing is risked for it.
      if (delivery.isExpiredIn(pauseMs)) return this.decisionOn(delivery, { kind: 'notStarted' }) as FinalDecision;
      if (delivery.queue.alone) {
        this.solitude.rest(delivery.queue, pauseMs);
        return this.decisionOn(delivery, { kind: 'crashed', crashes: delivery.crashes }) as FinalDecision;
      }
      if (!(await delivery.whileKept(this.solitude.afterPause(pauseMs)))) return undefined;
    }
    if (delivery.queue.alone) return this.runAlone(delivery);
    return this.solitude.before(this.turns[delivery.kind].run(delivery, () => this.runInTurn(delivery)));
  }

  private async runAlone(delivery: Delivery): Promise<FinalDecision | undefined> {
    this.observeAge(delivery);
    for (;;) {
      // Without the database the suspect cannot be handled, and it must not block the others, which are answered meanwhile.
      if (this.pause.active) await delivery.whileKept(this.pause.begin());
      if (delivery.isForgotten) return undefined;
      const decision = await this.solitude.run(async () => (this.pause.active ? HOLD : this.runOnce(delivery, true)));
      if (decision?.do !== 'hold') return decision;
    }
  }

  private async runInTurn(delivery: Delivery): Promise<FinalDecision | undefined> {
    this.observeAge(delivery);
    for (;;) {
      const isQuery = delivery.kind === 'queries';
      const mayStart =
        isQuery || !this.pause.active || (await delivery.whileKept(this.spareLimit(delivery, this.pause.mayStart(delivery))));
      const decision = await this.runOnce(delivery, mayStart ?? false);
      if (decision?.do !== 'hold') return decision;
    }
  }

  private async runOnce(delivery: Delivery, mayStart: boolean): Promise<Decision | undefined> {
    const isQuery = delivery.kind === 'queries';
    if (delivery.isForgotten || (this.closed && !isQuery && this.pause.stopped)) return undefined;
    const since = performance.now();
    const outcome: Outcome = mayStart ? await this.runner.outcomeOf(delivery) : { kind: 'notStarted' };
    if (isQuery && outcome.kind === 'databaseAway' && (await this.pause.mayTryAgain(delivery, since))) return HOLD;
    const decision = this.decisionOn(delivery, outcome);
    if (decision.do === 'hold') {
      delivery.mayHaveRun = true;
      void this.pause.begin();
    }
    return decision;
  }

  /**
   * Spares the delivery limit of events in a wait for the database. The broker ends a channel whose delivery is not settled in half an hour, and that
   * counts. So an event that was delivered again is not taken a third time before the database is back. A suspect waits in another queue.
   */
  private spareLimit<T>({ queue, context }: Delivery, wait: Promise<T>): Promise<T> {
    if (context.redelivered && queue.kind === 'events') void this.consumers.get(queue)?.pause('database');
    return wait;
  }

  private observeAge({ queue, age }: Delivery): void {
    if (age !== undefined) this.metrics.commandAge.observe({ queue: queue.name }, age);
  }

  private decisionOn({ kind, context, mayHaveRun }: Delivery, outcome: Outcome): Decision {
    const { awaited, attempt, pattern } = context;
    const { maxAttempts = 8 } = this.options;
    return decide(outcome, { kind, isEvent: isEvent(pattern), awaited, attempt, maxAttempts, mayHaveRun });
  }

  private onDatabase(state: DatabaseState): void {
    this.logger.warn({ msg: LOG_LINES[state] });
    // Deliveries that wait for their turn must be answered too.
    if (state === 'long') this.turns.commands.open();
    else this.turns.commands.close();
    if (state !== 'here') this.solitude.waitNoLonger();
    else for (const consumer of this.consumers.values()) void consumer.resume('database');
  }

  private async drain(): Promise<void> {
    this.solitude.stop();
    this.metrics.beforeRead.delete(this.lengths.look);
    const consumers = [...this.consumers.values()];
    await within(CANCEL_TIMEOUT_MS, Promise.all(consumers.map((consumer) => consumer.pause('closing'))));
    this.pause.stop();
    const drained = await within(this.options.drainTimeoutMs ?? 10_000, Promise.allSettled(this.running));
    if (!drained)
      this.logger.warn({ msg: 'handlers still run: the broker will deliver their messages again', count: this.running.size });
    await Promise.all([this.connections.flush(), ...consumers.map((consumer) => consumer.close())]);
    await this.connections.close();
  }
}
