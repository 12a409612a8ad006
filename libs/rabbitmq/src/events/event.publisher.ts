import type { ConfirmChannel } from 'amqplib';
import type { Registry } from 'prom-client';
import { ALL_EVENTS, HEARD_HERE, SUBSCRIPTIONS } from '@app/contracts/all-events';
import type { CloudEvent } from '@app/contracts/event';
import type { ServiceName } from '@app/contracts/message';
import { RabbitChannel } from '@app/amqp/connection/channel';
import { checkExchanges } from '@app/amqp/connection/check-topology';
import { RabbitConnection, type ConnectionOptions } from '@app/amqp/connection/connection';
import { resetSocket } from '@app/amqp/connection/open-connection';
import { HEADER } from '@app/amqp/messages/headers';
import { EventRefusals, type EventOutcome } from './event-refusals';
import { TransportMetrics } from '../metrics';
import { observe } from '../observe';
import { allAnswered, ConfirmedPublisher } from '@app/amqp/publishing/publisher';
import { checkQuorum, keepChecking } from '@app/amqp/publishing/quorum-check';
import { within } from '@app/runtime/within';
import { readStoredTrace, traceHeaders } from '@app/tracing/trace-context';
import { endFailed } from '@app/tracing/tracing';
import { startEvent } from '../spans';
import { QUORUM_CHECK, type ExchangeName } from '../topology/topology';

/** A transaction waits for the confirms, and the database aborts it after 5 s. */
const CONFIRM_TIMEOUT_MS = 4000;
/** How long an event is retried that a listener of another service refuses. */
const PATIENCE_MS = 30_000;
/** Most remembered events that only `events.own` has so far. A forgotten one is published to `events.own` again. */
const MAX_REMEMBERED = 10_000;

/** Types with a queue that set-up declares. The gateway has one for each process instead, and there may be none. */
const HAS_QUEUE: ReadonlySet<string> = new Set(
  Object.values(SUBSCRIPTIONS)
    .flat()
    .map(({ type }) => type),
);

/** An event to be published. The outbox has the same fields, in a library that this one must not know. */
export interface PublishedEvent {
  id: string;
  type: string;
  apiKey: string;
  organizationId: string;
  occurredAt: Date;
  /** JSON text of the `data`. */
  data: string;
  /** Trace context of the call that caused it, as in column `trace` of an outbox. */
  trace?: string | null;
}

export interface EventPublisherOptions {
  connection: ConnectionOptions;
  service: ServiceName;
  /** How long an event is retried that a listener of another service refuses, in milliseconds. Default 30,000. */
  patienceMs?: number;
  metrics?: Registry;
}

/**
 * Publishes events: first to `events.own`, for the processes of this system, then to `events`, for other services, with or without listeners there. So
 * a listener of another service cannot delay the processes of this system.
 */
export class EventPublisher {
  private readonly connection: RabbitConnection;
  private readonly channel: RabbitChannel<ConfirmChannel>;
  private readonly publisher: ConfirmedPublisher;
  private readonly stopChecking: () => void;
  private readonly refusals: EventRefusals;
  /** Ids of events that `events.own` has and `events` does not have yet. */
  private readonly heardHere = new Set<string>();

  constructor(private readonly options: EventPublisherOptions) {
    const { connection, service, patienceMs = PATIENCE_MS } = options;
    const metrics = TransportMetrics.of(options.metrics);
    // An increase() sees a first loss only when the series was there before it.
    for (const event of ALL_EVENTS) if (event.service === service) metrics.eventsRefused.inc({ type: event.type }, 0);
    const name = `${connection.name} events`;
    this.connection = new RabbitConnection({ ...connection, name }, observe(metrics));
    this.channel = new RabbitChannel(this.connection, {
      name: 'events',
      open: (model) => model.createConfirmChannel(),
      setup: async (channel) => {
        await checkExchanges(channel, ['events.own', 'events']);
        await checkQuorum(channel, this.connection, QUORUM_CHECK);
      },
      drain: allAnswered,
    });
    this.publisher = new ConfirmedPublisher(this.channel);
    this.stopChecking = keepChecking(this.publisher, this.connection, QUORUM_CHECK);
    this.refusals = new EventRefusals(patienceMs, metrics);
  }

  start(): void {
    this.connection.start();
  }

  /** undefined when events can be published, else a short reason without secrets. */
  check(): string | undefined {
    return this.channel.check();
  }

  /**
   * @returns the ids of events that a listener of another service refuses, to be published again. All other listeners have them. After 30 s of
   *   refusals an id is no longer returned: that listener loses the event, and `events_refused_total` counts it
   * @throws Error when the broker has not confirmed all events within 4 s, or a service of this system has no queue for one of them: some of them
   *   may be published
   */
  async publish(events: readonly PublishedEvent[]): Promise<ReadonlySet<string>> {
    const until = performance.now() + CONFIRM_TIMEOUT_MS;
    const own = events.filter(({ id, type }) => HEARD_HERE.has(type) && !this.heardHere.has(id));
    if (own.length > 0) {
      const outcomes = await this.publishTo('events.own', own, until);
      if (outcomes.some(({ refused }) => refused)) {
        // Another channel may succeed where this one never will: see call-channels.ts.
        if (this.channel.current) this.channel.renew(this.channel.current);
        throw new Error('an event was nacked');
      }
    }
    const again = this.refusals.judge(await this.publishTo('events', events, until));
    for (const { id } of events) if (!again.has(id)) this.heardHere.delete(id);
    return again;
  }

  async close(): Promise<void> {
    this.stopChecking();
    await this.channel.close();
    await this.connection.close();
  }

  private remember(id: string): void {
    this.heardHere.add(id);
    for (const oldest of this.heardHere) {
      if (this.heardHere.size <= MAX_REMEMBERED) return;
      this.heardHere.delete(oldest);
    }
  }

  private async publishTo(exchange: ExchangeName, events: readonly PublishedEvent[], until: number): Promise<EventOutcome[]> {
    const { current, state } = this.connection;
    const published = events.map((event) => this.publishOne(exchange, event));
    // Of all, also when one fails: after an error others may publish these events, and what follows from them, so nothing may arrive later.
    if (await within(until - performance.now(), Promise.allSettled(published))) return Promise.all(published);
    const late = new Error('the broker has not confirmed the events in time');
    // A blocked broker takes nothing from others either.
    if (current && state === 'up') resetSocket(current, late.message);
    throw late;
  }

  private async publishOne(exchange: ExchangeName, event: PublishedEvent): Promise<EventOutcome> {
    const { id, type, occurredAt } = event;
    const cause = readStoredTrace(event.trace);
    const span = startEvent(exchange, type, id, cause);
    const trace = span?.spanContext() ?? cause;
    const publication = this.publisher.publish({
      exchange,
      routingKey: type,
      // A listener of another service need not be there.
      mandatory: exchange === 'events.own' && HAS_QUEUE.has(type),
      body: bodyOf(event, this.options.service),
      properties: {
        persistent: true,
        contentType: 'application/cloudevents+json',
        messageId: id,
        correlationId: id,
        type,
        timestamp: Math.floor(occurredAt.getTime() / 1000),
        appId: this.options.service,
        userId: this.connection.username,
        headers: { [HEADER.apiKey]: event.apiKey, ...(trace && traceHeaders(trace)) },
      },
    });
    const outcome = await publication.catch((error: unknown) => {
      endFailed(span, 'not_written');
      throw error;
    });
    if (outcome === 'confirmed') span?.end();
    else endFailed(span, outcome);
    if (outcome === 'confirmed' && exchange === 'events.own') this.remember(id);
    if (outcome === 'returned') throw new Error(`no queue is bound for ${type}: run "npm run setup"`);
    if (outcome !== 'confirmed' && outcome !== 'nacked') throw new Error(`an event was ${outcome}`);
    return { id, type, refused: outcome === 'nacked' };
  }
}

/** The data is JSON text already, so only the attributes around it are serialized. */
function bodyOf({ id, type, apiKey, organizationId, occurredAt, data }: PublishedEvent, service: ServiceName): Buffer {
  const attributes: Omit<CloudEvent<unknown>, 'data'> = {
    specversion: '1.0',
    id,
    source: `/${service}`,
    type,
    subject: organizationId,
    time: occurredAt.toISOString(),
    datacontenttype: 'application/json',
    apikey: apiKey,
  };
  return Buffer.from(`${JSON.stringify(attributes).slice(0, -1)},"data":${data}}`);
}
