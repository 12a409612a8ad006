import type { Channel, ConsumeMessage } from 'amqplib';
import { isChannelClosed } from '@app/amqp/connection/opened-channel';

/**
 * Settles the deliveries of one channel. The acks of one turn of the event loop are sent as one frame with `multiple`, because a quorum queue
 * writes every ack frame to its log.
 */
export class AckBatcher {
  /** Delivery tags that are not settled, in order. True: to be acknowledged. */
  private readonly open = new Map<number, boolean>();
  private unsent: number[] = [];
  /** The question that was asked last, and the one that waits for its answer. */
  private asked: Promise<unknown> = Promise.resolve();
  private next?: Promise<boolean>;

  /** @param prefetch of the channel */
  constructor(
    readonly channel: Channel,
    private readonly prefetch: number,
  ) {}

  /** Deliveries that are not settled. */
  get unsettled(): number {
    return this.open.size;
  }

  /** Call it for every delivery of the channel: `multiple` also acknowledges tags that are not known here. */
  delivered({ fields }: ConsumeMessage): void {
    this.open.set(fields.deliveryTag, false);
  }

  ack({ fields: { deliveryTag } }: ConsumeMessage): void {
    if (!this.open.has(deliveryTag)) return;
    this.open.set(deliveryTag, true);
    if (this.unsent.push(deliveryTag) === 1) process.nextTick(() => this.flush());
  }

  async ackForGood(message: ConsumeMessage): Promise<boolean> {
    this.ack(message);
    return this.confirmed();
  }

  /** Sends the acks, and waits until the broker has them all. @returns false when the channel has ended first */
  confirmed(): Promise<boolean> {
    // One question at a time, and one for all that ask meanwhile.
    this.asked = this.next ??= this.asked.then(() => {
      this.next = undefined;
      this.flush();
      return this.isAnswered();
    });
    return this.next;
  }

  /** Returns a delivery to its queue. Uses nack, because from RabbitMQ 4.3 only reject counts towards the delivery limit. */
  requeue(message: ConsumeMessage): void {
    if (this.open.delete(message.fields.deliveryTag)) this.send(() => this.channel.nack(message, false, true));
  }

  /** Sends the acks that are pending. */
  flush(): void {
    const { unsent } = this;
    this.unsent = [];
    let last = 0;
    for (const [tag, settled] of this.open) {
      if (!settled) break;
      this.open.delete(tag);
      last = tag;
    }
    if (last > 0) this.acknowledge(last, true);
    // These are behind a delivery that is still being handled.
    for (const tag of unsent) if (this.open.delete(tag)) this.acknowledge(tag, false);
  }

  /** The broker answers after everything that was sent before. The question changes nothing. */
  private async isAnswered(): Promise<boolean> {
    try {
      await this.channel.prefetch(this.prefetch);
      return true;
    } catch {
      return false;
    }
  }

  private acknowledge(deliveryTag: number, allUpTo: boolean): void {
    this.send(() => this.channel.ack({ fields: { deliveryTag } } as ConsumeMessage, allUpTo));
  }

  private send(frame: () => void): void {
    if (isChannelClosed(this.channel)) return;
    try {
      frame();
    } catch {
      // The channel is closing; its close event follows.
    }
  }
}
