import { Logger } from '@nestjs/common';
import type { Channel, ConsumeMessage } from 'amqplib';
import type { Registry } from 'prom-client';
import type { Event } from '@app/contracts/event';
import { parseJson } from '@app/contracts/json';
import { validateBody } from '@app/contracts/validate';
import { RabbitChannel } from '@app/amqp/connection/channel';
import { openOwnQueue } from '@app/amqp/connection/own-queue';
import { checkExchanges } from '@app/amqp/connection/check-topology';
import { RabbitConnection, type ConnectionOptions } from '@app/amqp/connection/connection';
import { TransportMetrics } from '../metrics';
import { observe } from '../observe';

/** Most events that wait for a process that does not read. Then the oldest are dropped, because a full queue would block the outbox. */
const MAX_WAITING = 10_000;

export interface EventSubscriberOptions<Data> {
  connection: ConnectionOptions;
  event: Event<Data>;
  onEvent: (data: Data) => void;
  metrics?: Registry;
}

/**
 * Delivers every event of one type to this process, from an exclusive queue that is deleted with the connection. Events that are published
 * without a connection are missed: use it only where the events make a change visible sooner, such as dropping a cached answer.
 */
export class EventSubscriber<Data extends object> {
  private readonly logger = new Logger('RabbitMQ');
  private readonly connection: RabbitConnection;
  private readonly channel: RabbitChannel<Channel>;

  constructor(private readonly options: EventSubscriberOptions<Data>) {
    const { connection, metrics } = options;
    this.connection = new RabbitConnection(
      { ...connection, name: `${connection.name} listening` },
      observe(TransportMetrics.of(metrics)),
    );
    this.channel = new RabbitChannel(this.connection, {
      name: options.event.type,
      open: (model) => model.createChannel(),
      setup: (channel) => this.setUp(channel),
      // The next channel has a queue of its own, and receives the same events.
      drain: async () => undefined,
    });
  }

  start(): void {
    this.connection.start();
  }

  /** undefined when events are received, else a short reason without secrets. */
  check(): string | undefined {
    return this.channel.check();
  }

  async close(): Promise<void> {
    await this.channel.close();
    await this.connection.close();
  }

  private async setUp(channel: Channel): Promise<void> {
    await checkExchanges(channel, ['events.own']);
    const limits = { 'x-max-length': MAX_WAITING, 'x-overflow': 'drop-head' };
    const binding = { exchange: 'events.own', routingKey: this.options.event.type, limits };
    await openOwnQueue(channel, binding, (message) => this.receive(message));
  }

  private receive({ content, properties }: ConsumeMessage): void {
    const { event, onEvent } = this.options;
    let data: Data;
    try {
      const body = parseJson(content) as { data?: unknown } | null;
      data = validateBody(event.data, body?.data, 'data');
    } catch (error) {
      const { message: reason } = error as Error;
      return this.logger.warn({
        msg: 'an event is invalid',
        type: event.type,
        messageId: properties.messageId as unknown,
        reason,
      });
    }
    onEvent(data);
  }
}
