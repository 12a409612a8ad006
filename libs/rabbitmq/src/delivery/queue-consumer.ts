import { Logger } from '@nestjs/common';
import type { Channel, ConsumeMessage } from 'amqplib';
import { closeQuietly, RabbitChannel } from '@app/amqp/channel';
import { checkQueues } from '@app/amqp/check-topology';
import type { RabbitConnection } from '@app/amqp/connection';
import { AckBatcher } from './ack-batcher';

export interface QueueConsumerOptions {
  queue: string;
  /** Most deliveries not settled. */
  prefetch: number;
  /** Queues that must exist before this one is consumed. */
  needs: readonly string[];
  /** Called synchronously for each delivery. */
  onDelivery: (message: ConsumeMessage, acks: AckBatcher) => void;
}

/** Why a consumer pauses: for good, while a suspect is handled, or until what it has in hand can be put away. */
export type Hold = 'closing' | 'suspect' | 'letters';

/** Consumes one queue for as long as it is wanted: again after a lost channel, and after the broker cancelled it. */
export class QueueConsumer {
  private readonly logger = new Logger('RabbitMQ');
  private readonly channel: RabbitChannel<Channel>;
  /** Why it consumes nothing for now. */
  private readonly holds = new Set<Hold>();
  /** Of the channel that is being set up, or is. */
  private acks?: AckBatcher;
  private tag?: string;
  private steps: Promise<void> = Promise.resolve();

  constructor(
    connection: RabbitConnection,
    private readonly options: QueueConsumerOptions,
  ) {
    this.channel = new RabbitChannel(connection, {
      name: options.queue,
      open: (model) => model.createChannel(),
      setup: async (channel) => {
        await checkQueues(channel, [options.queue, ...options.needs]);
        await channel.prefetch(options.prefetch);
        this.acks = new AckBatcher(channel);
        this.tag = undefined;
        await this.adjust();
      },
    });
    this.channel.on('lost', () => {
      this.acks = undefined;
      this.tag = undefined;
    });
  }

  /** undefined when it consumes as far as it is wanted, else a short reason without secrets. */
  check(): string | undefined {
    const problem = this.channel.check();
    // Only publishing suffers from a blocked connection.
    if (problem && this.channel.connection.state !== 'blocked') return problem;
    return this.wanted && this.tag === undefined ? `not consuming ${this.options.queue}` : undefined;
  }

  /** Consumes no more until every pause is resumed; resolves when nothing more is delivered. What was delivered can still be settled. */
  pause(why: Hold): Promise<void> {
    this.holds.add(why);
    return this.adjustOrReopen();
  }

  resume(why: Hold): Promise<void> {
    this.holds.delete(why);
    return this.adjustOrReopen();
  }

  /** What was acknowledged before is flushed; what was not goes back to the queue. */
  close(): Promise<void> {
    this.acks?.flush();
    return this.channel.close();
  }

  private get wanted(): boolean {
    return this.holds.size === 0;
  }

  private async adjustOrReopen(): Promise<void> {
    const { acks } = this;
    try {
      await this.adjust();
    } catch {
      if (acks) closeQuietly(acks.channel);
    }
  }

  /** Brings the broker to what is wanted, one step after the other. */
  private adjust(): Promise<void> {
    const step = this.steps.then(async () => {
      const { acks } = this;
      if (!acks) return;
      if (this.wanted && this.tag === undefined) this.tag = await this.consume(acks);
      else if (!this.wanted && this.tag !== undefined) {
        const { tag } = this;
        this.tag = undefined;
        await acks.channel.cancel(tag);
      }
    });
    this.steps = step.catch(() => undefined);
    return step;
  }

  private async consume(acks: AckBatcher): Promise<string> {
    const { queue, onDelivery } = this.options;
    const { channel } = acks;
    const { consumerTag } = await channel.consume(queue, (message) => {
      if (message) {
        acks.delivered(message);
        return onDelivery(message, acks);
      }
      // The broker cancels the consumers of a queue that is deleted or moved.
      this.logger.warn({ msg: 'the broker cancelled the consumer', queue });
      this.tag = undefined;
      closeQuietly(channel);
    });
    return consumerTag;
  }
}
