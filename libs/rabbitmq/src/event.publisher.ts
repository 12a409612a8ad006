import type { ConfirmChannel } from 'amqplib';
import type { Registry } from 'prom-client';
import type { CloudEvent } from '@app/contracts/event';
import type { ServiceName } from '@app/contracts/message';
import { RabbitChannel } from '@app/amqp/channel';
import { checkExchanges } from '@app/amqp/check-topology';
import { RabbitConnection, type ConnectionOptions } from '@app/amqp/connection';
import { HEADER } from '@app/amqp/headers';
import { TransportMetrics } from './metrics';
import { observe } from './observe';
import { ConfirmedPublisher } from '@app/amqp/publisher';
import { within } from '@app/amqp/within';

/** A transaction waits for the confirms, and the database ends it after 5 s. */
const CONFIRM_TIMEOUT_MS = 4000;

export interface PublishedEvent {
  id: string;
  type: string;
  apiKey: string;
  organizationId: string;
  occurredAt: Date;
  /** JSON text of the `data`. */
  data: string;
}

export interface EventPublisherOptions {
  connection: ConnectionOptions;
  service: ServiceName;
  metrics?: Registry;
}

/** Publishes events to exchange `events`, whether anybody listens or not. */
export class EventPublisher {
  private readonly connection: RabbitConnection;
  private readonly channel: RabbitChannel<ConfirmChannel>;
  private readonly publisher: ConfirmedPublisher;

  constructor(private readonly options: EventPublisherOptions) {
    const { connection, metrics } = options;
    const name = `${connection.name} events`;
    this.connection = new RabbitConnection({ ...connection, name }, observe(TransportMetrics.of(metrics)));
    this.channel = new RabbitChannel(this.connection, {
      name: 'events',
      open: (model) => model.createConfirmChannel(),
      setup: (channel) => checkExchanges(channel, ['events']),
    });
    this.publisher = new ConfirmedPublisher(this.channel);
  }

  start(): void {
    this.connection.start();
  }

  /** undefined when events can be published, else a short reason without secrets. */
  check(): string | undefined {
    return this.channel.check();
  }

  /** @throws Error when the broker has not confirmed every one of them within 4 s: some may be published all the same */
  async publish(events: readonly PublishedEvent[]): Promise<void> {
    let problem: Error | undefined = new Error('the broker has not confirmed the events in time');
    const all = Promise.all(events.map((event) => this.publishOne(event))).then(
      () => (problem = undefined),
      (error: unknown) => (problem = error as Error),
    );
    await within(CONFIRM_TIMEOUT_MS, all);
    if (problem) throw problem;
  }

  async close(): Promise<void> {
    await this.channel.close();
    await this.connection.close();
  }

  private async publishOne(event: PublishedEvent): Promise<void> {
    const { id, type, occurredAt } = event;
    const outcome = await this.publisher.publish({
      exchange: 'events',
      routingKey: type,
      // Nobody has to listen.
      mandatory: false,
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
        headers: { [HEADER.apiKey]: event.apiKey },
      },
    });
    if (outcome !== 'confirmed') throw new Error(`an event was ${outcome}`);
  }
}

/** The data is JSON already: only what stands around it is printed. */
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
