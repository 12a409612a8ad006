import type { Channel } from 'amqplib';
import type { RabbitChannel } from '@app/amqp/channel';
import { BATCH_TYPE, encodeBatch, type EncodedReply } from '@app/amqp/reply-format';
import { writeMessage, type Properties } from '@app/amqp/write-message';
import type { ReplyAddress } from '../delivery/envelope';

/** Bodies of one batch: the message stays far below the broker's size limit. */
const MAX_BATCH_BYTES = 1024 * 1024;

interface Batch {
  replies: { correlationId: string; reply: EncodedReply }[];
  bytes: number;
  /** Whether the batch was written: the channel may be lost before the end of the turn. */
  sent: Promise<boolean>;
}

/** Publishes replies. Replies of one turn of the event loop to the same caller share a message: a batch of commands ends all at once. */
export class ReplyBatcher {
  /** Keyed by the caller's queue. */
  private readonly batches = new Map<string, Batch>();

  constructor(private readonly channel: RabbitChannel<Channel>) {}

  /** @returns false when there is no channel any more @throws Error when the channel is closing, or the protocol cannot carry the reply */
  async publish(address: ReplyAddress, reply: EncodedReply): Promise<boolean> {
    const { replyTo, correlationId, batches } = address;
    if (!batches || correlationId === undefined) return this.write(replyTo, { correlationId, ...reply.properties }, reply.body);
    let batch = this.batches.get(replyTo);
    if (!batch || batch.bytes + reply.body.length > MAX_BATCH_BYTES) this.batches.set(replyTo, (batch = this.begin(replyTo)));
    batch.replies.push({ correlationId, reply });
    batch.bytes += reply.body.length;
    return batch.sent;
  }

  private begin(replyTo: string): Batch {
    const endOfTurn = new Promise<void>((resolve) => process.nextTick(resolve));
    const batch: Batch = {
      replies: [],
      bytes: 0,
      sent: endOfTurn.then(() => {
        // A full batch has been replaced by another one already.
        if (this.batches.get(replyTo) === batch) this.batches.delete(replyTo);
        return this.writeBatch(replyTo, batch);
      }),
    };
    return batch;
  }

  private writeBatch(replyTo: string, { replies }: Batch): boolean {
    const [only] = replies;
    if (replies.length > 1) return this.write(replyTo, { type: BATCH_TYPE, persistent: false }, encodeBatch(replies));
    return this.write(replyTo, { correlationId: only.correlationId, ...only.reply.properties }, only.reply.body);
  }

  private write(replyTo: string, properties: Properties, body: Buffer): boolean {
    const { current } = this.channel;
    if (current) writeMessage(current, { exchange: 'replies', routingKey: replyTo, mandatory: false }, properties, body);
    return current !== undefined;
  }
}
