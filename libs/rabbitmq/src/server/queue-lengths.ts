import type { Channel } from 'amqplib';
import type { RabbitConnection } from '@app/amqp/connection/connection';
import { closeQuietly } from '@app/amqp/connection/opened-channel';
import { within } from '@app/runtime/within';
import type { ServiceName } from '@app/contracts/message';
import type { TransportMetrics } from '../metrics';
import { LANE_NUMBERS, QUEUES } from '../topology/topology';

/** How long a reader of the metrics waits for the broker, in milliseconds. Later answers count for the next one. */
const PATIENCE_MS = 1000;
/** How long one queue is waited for. RabbitMQ 4.0 answers after 70 s when the only node of a queue is away. */
const LOOK_MS = 5000;
/** How long a queue is left alone that cannot be looked at. Each attempt costs a channel, and a line in the broker's log. */
const LEAVE_ALONE_MS = 60_000;
/** One for each queue that a service has on one broker node, which may be away: the one of its calls, and one in each lane. And one more. */
const CHANNELS = LANE_NUMBERS.length + 2;

/** Asks the broker how long the queues of a service are: only when the metrics are read, and for one reader at a time. */
export class QueueLengths {
  private readonly queues: string[];
  private readonly leftAloneUntil = new Map<string, number>();
  private looking?: Promise<unknown>;

  /** @param lookMs how long one queue is waited for */
  constructor(
    private readonly connection: RabbitConnection,
    service: ServiceName,
    private readonly metrics: TransportMetrics,
    private readonly lookMs = LOOK_MS,
  ) {
    const own = QUEUES.filter(({ name }) => name.startsWith(`${service}.`));
    this.queues = own.map(({ name }) => name);
    for (const { name: queue, arguments: limits } of own)
      metrics.queueMessagesLimit.set({ queue }, Number(limits['x-max-length']));
  }

  /** Resolves when the metrics are up to date, or after a second. Never rejects. */
  readonly look = async (): Promise<void> => {
    this.looking ??= this.lookAtAll().finally(() => (this.looking = undefined));
    await within(PATIENCE_MS, this.looking);
  };

  /** Over several channels: a queue without an answer holds its channel up, and the others go on over the rest. */
  private async lookAtAll(): Promise<void> {
    const queues = this.queues.filter((queue) => performance.now() >= (this.leftAloneUntil.get(queue) ?? 0));
    await Promise.all(Array.from({ length: CHANNELS }, () => this.lookAtEach(queues)));
  }

  /** @param queues takes the first one away, again and again */
  private async lookAtEach(queues: string[]): Promise<void> {
    const { current: model } = this.connection;
    let channel: Channel | undefined;
    for (let queue = queues.shift(); queue !== undefined; queue = queues.shift()) {
      channel ??= await this.open();
      if (!channel) return this.forgetAll();
      try {
        const looked = channel.checkQueue(queue);
        if (!(await within(this.lookMs, looked))) throw new Error('no answer');
        const { messageCount, consumerCount } = await looked;
        this.metrics.queueMessages.set({ queue }, messageCount);
        this.metrics.queueConsumers.set({ queue }, consumerCount);
      } catch {
        // The answers of all queues were lost with the connection.
        if (this.connection.current !== model) return this.forgetAll();
        // It does not exist, or its only node is away. The broker has closed the channel, or does so when it gives up.
        closeQuietly(channel);
        channel = undefined;
        this.leftAloneUntil.set(queue, performance.now() + LEAVE_ALONE_MS);
        this.metrics.queueMessages.remove({ queue });
        this.metrics.queueConsumers.remove({ queue });
      }
    }
    if (channel) closeQuietly(channel);
  }

  private async open(): Promise<Channel | undefined> {
    const channel = await this.connection.current?.createChannel().catch(() => undefined);
    // Without a listener the end of the channel would end the process.
    return channel?.on('error', () => undefined);
  }

  private forgetAll(): void {
    this.metrics.queueMessages.reset();
    this.metrics.queueConsumers.reset();
  }
}
