import type { Channel, ConsumeMessage } from 'amqplib';
import { isChannelClosed } from '@app/amqp/channel';

/**
 * Settles the deliveries of one channel. What one turn of the event loop acknowledges goes out as one frame with `multiple`: a quorum queue
 * writes each frame to its log.
 */
export class AckBatcher {
  /** Delivery tags that are not settled, in their order, and whether they are to be acknowledged. */
  private readonly open = new Map<number, boolean>();
  private unsent: number[] = [];

  constructor(readonly channel: Channel) {}

  /** To be told of every delivery of the channel: `multiple` would acknowledge one that is not known. */
  delivered({ fields }: ConsumeMessage): void {
    this.open.set(fields.deliveryTag, false);
  }

  ack({ fields: { deliveryTag } }: ConsumeMessage): void {
    if (!this.open.has(deliveryTag)) return;
    this.open.set(deliveryTag, true);
    if (this.unsent.push(deliveryTag) === 1) process.nextTick(() => this.flush());
  }

  /** Back to the queue. nack, because from 4.3 on it does not count towards the delivery limit, as reject does. */
  requeue(message: ConsumeMessage): void {
    if (this.open.delete(message.fields.deliveryTag)) this.send(() => this.channel.nack(message, false, true));
  }

  /** Sends what has not been sent yet. */
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
    // Behind one that is still being handled.
    for (const tag of unsent) if (this.open.delete(tag)) this.acknowledge(tag, false);
  }

  private acknowledge(deliveryTag: number, allUpTo: boolean): void {
    this.send(() => this.channel.ack({ fields: { deliveryTag } } as ConsumeMessage, allUpTo));
  }

  private send(frame: () => void): void {
    if (isChannelClosed(this.channel)) return;
    try {
      frame();
    } catch {
      // The channel is closing, and its close event is still to come.
    }
  }
}
