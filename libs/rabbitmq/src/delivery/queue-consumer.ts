import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { Channel, ConsumeMessage } from 'amqplib';
import { RabbitChannel } from '@app/amqp/connection/channel';
import { checkQueues, explainMissing, NodeAway } from '@app/amqp/connection/check-topology';
import { closeQuietly, isChannelClosed } from '@app/amqp/connection/opened-channel';
import type { RabbitConnection } from '@app/amqp/connection/connection';
import { within } from '@app/runtime/within';
import { AckBatcher } from './ack-batcher';

export interface QueueConsumerOptions {
  queue: string;
  /** Most unsettled deliveries. */
  prefetch: number;
  /** Among the consumers of a queue that have room for a delivery, the one with the highest gets it. Absent: they take turns. */
  priority?: number;
  /** Whether the process may have one delivery of the queue only, also while its consumer moves to another node. */
  alone?: boolean;
  /** Queues that must exist before this one is consumed. */
  needs: readonly string[];
  /**
   * Called when the broker node of the queue is found away, or does not answer, or is back. Present: {@link QueueConsumer.check} takes that for no
   * problem.
   */
  onNodeAway?: (isAway: boolean) => void;
  /** Called synchronously for each delivery. */
  onDelivery: (message: ConsumeMessage, acks: AckBatcher) => void;
  /** Called when a channel has ended: its deliveries that are not settled are forgotten. */
  onChannelEnd?: () => void;
}

/**
 * Reason of a pause: the process stops; a suspect is handled; deliveries cannot be published to a retry or dead-letter queue; or the database is
 * away for so long that the broker delivers again.
 */
export type PauseReason = 'closing' | 'suspect' | 'letters' | 'database';

/** A channel with its deliveries, and with its consumer while it has one. */
interface Consuming {
  readonly acks: AckBatcher;
  tag?: string;
}

/** How long a replaced channel stays open for deliveries that are not settled. Then the broker delivers them again. */
const SETTLE_TIMEOUT_MS = 60_000;
const LOOK_EVERY_MS = 50;
const CONSUME_TIMEOUT_MS = 10_000;
/** Without an answer after this time, the only node of a queue counts as away. */
const AWAY_AFTER_MS = 3_000;
/** RabbitMQ 4.0 answers after 70 s when the node of a queue is away, and at once when it is back. Another channel would wait as long. */
const AWAY_SETUP_MS = 90_000;

/** Consumes one queue unless it is paused. It starts again after a lost channel and after the broker cancelled it. */
export class QueueConsumer {
  private readonly logger = new Logger('RabbitMQ');
  private readonly channel: RabbitChannel<Channel>;
  /** Reasons why it does not consume for now. */
  private readonly pauses = new Set<PauseReason>();
  private readonly prepared = new WeakMap<Channel, Consuming>();
  private consuming?: Consuming;
  /** Whether the consumer is on its way to another channel. */
  private moving = false;
  private isNodeAway = false;
  private steps: Promise<void> = Promise.resolve();

  constructor(
    connection: RabbitConnection,
    private readonly options: QueueConsumerOptions,
  ) {
    this.channel = new RabbitChannel(connection, {
      name: options.queue,
      open: (model) => model.createChannel(),
      ...(options.onNodeAway && { setupMs: AWAY_SETUP_MS }),
      setup: async (channel, isNext) => {
        await this.checkQueues(channel);
        await channel.prefetch(options.prefetch);
        if (options.onChannelEnd) channel.once('close', options.onChannelEnd);
        const consuming: Consuming = { acks: new AckBatcher(channel, options.prefetch) };
        this.prepared.set(channel, consuming);
        // It consumes when the channel that it replaces has stopped.
        if (isNext) return;
        this.consuming = consuming;
        await this.adjust();
      },
      drain: (channel) => this.drain(channel),
    });
    this.channel.on('open', (channel) => this.begin(channel));
    this.channel.on('lost', () => (this.consuming = undefined));
  }

  /** undefined when it consumes, or is paused on purpose; else a short reason without secrets. */
  check(): string | undefined {
    const problem = this.channel.check();
    if (this.isNodeAway && this.channel.connection.state === 'up') return undefined;
    // A blocked connection stops only publishing.
    if (problem && this.channel.connection.state !== 'blocked') return problem;
    return this.wanted && !this.moving && this.consuming?.tag === undefined ? `not consuming ${this.options.queue}` : undefined;
  }

  /** Stops consuming until every pause is resumed. Resolves when nothing more is delivered. Earlier deliveries can still be settled. */
  pause(why: PauseReason): Promise<void> {
    this.pauses.add(why);
    return this.adjustOrReopen();
  }

  resume(why: PauseReason): Promise<void> {
    this.pauses.delete(why);
    return this.adjustOrReopen();
  }

  /** Flushes the acks and closes the channel. The broker requeues the deliveries that were not acknowledged. */
  close(): Promise<void> {
    this.consuming?.acks.flush();
    return this.channel.close();
  }

  private async checkQueues(channel: Channel): Promise<void> {
    const { queue, needs } = this.options;
    try {
      const checked = checkQueues(channel, [queue, ...needs]);
      if (!(await within(AWAY_AFTER_MS, checked))) this.setNodeAway(true);
      await checked;
      this.setNodeAway(false);
    } catch (error) {
      // A queue that does not exist any more is a problem again.
      this.setNodeAway(error instanceof NodeAway);
      throw error;
    }
  }

  private setNodeAway(isAway: boolean): void {
    const { onNodeAway } = this.options;
    if (!onNodeAway || isAway === this.isNodeAway) return;
    this.isNodeAway = isAway;
    onNodeAway(isAway);
  }

  private get wanted(): boolean {
    return this.pauses.size === 0;
  }

  private begin(channel: Channel): void {
    const earlier = this.consuming;
    const next = this.prepared.get(channel);
    if (!earlier || earlier === next) return;
    this.consuming = next;
    this.moving = true;
    this.steps = this.steps.then(() => this.leave(earlier));
    void within(SETTLE_TIMEOUT_MS + CONSUME_TIMEOUT_MS, this.adjustOrReopen()).then((inTime) => {
      this.moving = false;
      if (!inTime) closeQuietly(channel);
    });
  }

  /** Cancels the consumer of a replaced channel. Its deliveries can still be settled. */
  private async leave(earlier: Consuming): Promise<void> {
    await cancel(earlier).catch(() => undefined);
    if (this.options.alone) await settled(earlier);
  }

  private async drain(channel: Channel): Promise<void> {
    const earlier = this.prepared.get(channel);
    await this.steps;
    if (!earlier) return;
    await settled(earlier);
    // Otherwise amqplib may write the end of the connection before the acks.
    await earlier.acks.confirmed();
  }

  private async adjustOrReopen(): Promise<void> {
    const { consuming } = this;
    try {
      await this.adjust();
    } catch {
      if (consuming) closeQuietly(consuming.acks.channel);
    }
  }

  /** Starts or cancels the consumer to match the pauses. The steps run one after the other. */
  private adjust(): Promise<void> {
    const step = this.steps.then(async () => {
      const { consuming } = this;
      if (!consuming) return;
      if (this.wanted && consuming.tag === undefined) consuming.tag = await this.consume(consuming);
      else if (!this.wanted) await cancel(consuming);
    });
    this.steps = step.catch(() => undefined);
    return step;
  }

  private async consume(consuming: Consuming): Promise<string> {
    const { queue, priority, onDelivery } = this.options;
    const { acks } = consuming;
    const { channel } = acks;
    const onMessage = (message: ConsumeMessage | null) => {
      if (message) {
        acks.delivered(message);
        return onDelivery(message, acks);
      }
      // The broker cancels consumers when the queue is deleted or moves to another node.
      this.logger.warn({ msg: 'the broker cancelled the consumer', queue });
      consuming.tag = undefined;
      closeQuietly(channel);
    };
    const consumed = channel.consume(queue, onMessage, { priority });
    const { consumerTag } = await explainMissing(`queue ${queue}`, consumed);
    return consumerTag;
  }
}

async function cancel(consuming: Consuming): Promise<void> {
  const { tag, acks } = consuming;
  consuming.tag = undefined;
  if (tag !== undefined) await acks.channel.cancel(tag);
}

async function settled({ acks }: Consuming): Promise<void> {
  const until = performance.now() + SETTLE_TIMEOUT_MS;
  while (acks.unsettled > 0 && !isChannelClosed(acks.channel) && performance.now() < until)
    await sleep(LOOK_EVERY_MS, undefined, { ref: false });
}
