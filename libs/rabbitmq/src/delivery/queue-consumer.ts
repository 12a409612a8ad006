import { Logger } from '@nestjs/common';
import type { Channel, ConsumeMessage } from 'amqplib';
import { closeQuietly, RabbitChannel } from '@app/amqp/channel';
import { checkQueues, NodeAway } from '@app/amqp/check-topology';
import type { RabbitConnection } from '@app/amqp/connection';
import { AckBatcher } from './ack-batcher';

export interface QueueConsumerOptions {
  queue: string;
  /** Most unsettled deliveries. */
  prefetch: number;
  /** Queues that must exist before this one is consumed. */
  needs: readonly string[];
  /** Called when the broker node of the queue is found away or back. Present: {@link QueueConsumer.check} takes that for no problem. */
  onNodeAway?: (isAway: boolean) => void;
  /** Called synchronously for each delivery. */
  onDelivery: (message: ConsumeMessage, acks: AckBatcher) => void;
}

/** Reason of a pause: the process stops; a suspect is handled; or deliveries cannot be published to a retry or dead-letter queue. */
export type Hold = 'closing' | 'suspect' | 'letters';

/** Consumes one queue unless it is paused. It starts again after a lost channel and after the broker cancelled it. */
export class QueueConsumer {
  private readonly logger = new Logger('RabbitMQ');
  private readonly channel: RabbitChannel<Channel>;
  /** Reasons why it does not consume for now. */
  private readonly holds = new Set<Hold>();
  /** Acks of the current channel, which may still be in setup. */
  private acks?: AckBatcher;
  private tag?: string;
  private isNodeAway = false;
  private steps: Promise<void> = Promise.resolve();

  constructor(
    connection: RabbitConnection,
    private readonly options: QueueConsumerOptions,
  ) {
    this.channel = new RabbitChannel(connection, {
      name: options.queue,
      open: (model) => model.createChannel(),
      setup: async (channel) => {
        await this.checkQueues(channel);
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

  /** undefined when it consumes, or is paused on purpose; else a short reason without secrets. */
  check(): string | undefined {
    const problem = this.channel.check();
    if (this.isNodeAway && this.channel.connection.state === 'up') return undefined;
    // A blocked connection stops only publishing.
    if (problem && this.channel.connection.state !== 'blocked') return problem;
    return this.wanted && this.tag === undefined ? `not consuming ${this.options.queue}` : undefined;
  }

  /** Stops consuming until every pause is resumed. Resolves when nothing more is delivered. Earlier deliveries can still be settled. */
  pause(why: Hold): Promise<void> {
    this.holds.add(why);
    return this.adjustOrReopen();
  }

  resume(why: Hold): Promise<void> {
    this.holds.delete(why);
    return this.adjustOrReopen();
  }

  /** Flushes the acks and closes the channel. The broker requeues the deliveries that were not acknowledged. */
  close(): Promise<void> {
    this.acks?.flush();
    return this.channel.close();
  }

  private async checkQueues(channel: Channel): Promise<void> {
    const { queue, needs, onNodeAway } = this.options;
    try {
      await checkQueues(channel, [queue, ...needs]);
      if (this.isNodeAway) onNodeAway?.((this.isNodeAway = false));
    } catch (error) {
      if (onNodeAway && error instanceof NodeAway) onNodeAway((this.isNodeAway = true));
      throw error;
    }
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

  /** Starts or cancels the consumer to match the pauses. The steps run one after the other. */
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
      // The broker cancels consumers when the queue is deleted or moves to another node.
      this.logger.warn({ msg: 'the broker cancelled the consumer', queue });
      this.tag = undefined;
      closeQuietly(channel);
    });
    return consumerTag;
  }
}
