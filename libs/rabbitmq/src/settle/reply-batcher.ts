import { once } from 'node:events';
import type { Channel } from 'amqplib';
import type { RabbitChannel } from '@app/amqp/connection/channel';
import { BATCH_TYPE, encodeBatch, type EncodedReply } from '@app/amqp/messages/reply-format';
import { within } from '@app/amqp/connection/within';
import { writeMessage, type Properties } from '@app/amqp/messages/write-message';
import type { ReplyAddress } from '../delivery/envelope';
import { ReturnedReplies } from './returned-replies';

/** Bodies of one batch: the message stays far below the broker's size limit. */
const MAX_BATCH_BYTES = 1024 * 1024;
/** A larger reply is written alone and at once, so that the next one knows whether the socket takes more. */
export const LARGE_REPLY_BYTES = 64 * 1024;
/** Bytes of replies, beyond the frames below, that wait for the socket of a channel. Further replies are not written until it has taken all. */
const MAX_UNTAKEN_BYTES = 8 * 1024 * 1024;
/** Frames, of at most 128 KiB, that a channel takes before it says that the socket takes none. amqplib's default is 1024. */
export const HIGH_WATER_MARK = 64;

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
  private readonly untaken = new WeakMap<Channel, { bytes: number; taken: Promise<unknown> }>();

  constructor(private readonly channel: RabbitChannel<Channel>) {
    const returned = new ReturnedReplies((...reply) => this.write(...reply));
    channel.on('open', (opened) =>
      opened.on('return', (message) => {
        channel.connection.observer.returned(message.fields.exchange);
        returned.add(message);
      }),
    );
  }

  /**
   * Waits while the broker takes nothing.
   *
   * @param until by `performance.now()`
   * @returns false when there is no channel any more, or the time is over
   * @throws Error when the channel is closing, or the protocol cannot carry the reply
   */
  async publish(address: ReplyAddress, reply: EncodedReply, until: number): Promise<boolean> {
    const { replyTo, correlationId, batches } = address;
    // Again after each wait: the replies that waited together are written one after the other.
    for (let full = this.untakenNow(); full && full.bytes >= MAX_UNTAKEN_BYTES; full = this.untakenNow())
      if (!(await within(until - performance.now(), full.taken))) return false;
    const isAlone = !batches || correlationId === undefined || reply.body.length > LARGE_REPLY_BYTES;
    if (isAlone) return this.write(replyTo, { correlationId, ...reply.properties }, reply.body);
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
    if (!current) return false;
    const taken = writeMessage(current, { exchange: 'replies', routingKey: replyTo, mandatory: true }, properties, body);
    if (!taken) this.countUntaken(current, body.length);
    return true;
  }

  private untakenNow() {
    const { current } = this.channel;
    return current && this.untaken.get(current);
  }

  private countUntaken(channel: Channel, bytes: number): void {
    const waiting = this.untaken.get(channel);
    if (waiting) return void (waiting.bytes += bytes);
    const ended = new AbortController();
    const { signal } = ended;
    const taken = Promise.race([once(channel, 'drain', { signal }), once(channel, 'close', { signal })])
      .catch(() => undefined)
      .finally(() => {
        ended.abort();
        this.untaken.delete(channel);
      });
    this.untaken.set(channel, { bytes, taken });
  }
}
