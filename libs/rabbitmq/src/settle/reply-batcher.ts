import { once } from 'node:events';
import type { Channel } from 'amqplib';
import { LRUCache } from 'lru-cache';
import { RabbitChannel } from '@app/amqp/connection/channel';
import { checkExchanges } from '@app/amqp/connection/check-topology';
import type { RabbitConnection } from '@app/amqp/connection/connection';
import { BATCH_TYPE, encodeBatch, type EncodedReply } from '@app/amqp/messages/reply-format';
import { within } from '@app/runtime/within';
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
const HIGH_WATER_MARK = 64;
/** Longest wait for the confirm of a reply. The queue of a caller may be on a node that stands still, and others need the place of its command. */
const CONFIRM_MS = 1000;
/** Reply queues without a confirm that are remembered, and for how long. */
const SILENT = { max: 1000, ttl: 60_000 };
/** A channel keeps a place for each message behind one that is not confirmed. Another channel takes its place after this time. */
const MOST_SILENT_MS = 10_000;
/** How often a reply is written whose channel ends without a confirm. */
const MOST_WRITES = 3;

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
  private readonly returned = new ReturnedReplies(
    (...reply) => this.write(...reply),
    (timeoutMs) => this.channel.whenReady(timeoutMs),
  );
  private readonly untaken = new WeakMap<Channel, { bytes: number; taken: Promise<unknown> }>();
  private readonly channel: RabbitChannel<Channel>;
  private readonly silent = new LRUCache<string, true>(SILENT);
  /** Reply queues whose confirm was late. */
  private readonly late = new LRUCache<string, true>(SILENT);

  /**
   * @param isConfirmed whether the broker confirms the replies. An ack goes over another connection: a broker that has it may have lost the reply
   * with this one.
   * @param mostSilentMs how long a queue may confirm nothing before another channel takes the place of this one
   */
  constructor(
    connection: RabbitConnection,
    name: string,
    private readonly isConfirmed: boolean,
    private readonly mostSilentMs = MOST_SILENT_MS,
  ) {
    const options = { highWaterMark: HIGH_WATER_MARK };
    this.channel = new RabbitChannel<Channel>(connection, {
      name,
      open: (model) => (isConfirmed ? model.createConfirmChannel(options) : model.createChannel(options)),
      setup: (channel) => checkExchanges(channel, ['replies']),
      // An answer shows that the broker has every reply: amqplib may write the end of the connection before them.
      drain: (channel) => checkExchanges(channel, ['replies']),
    });
    this.channel.on('open', (opened) =>
      opened.on('return', (message) => {
        connection.observer.returned(message.fields.exchange);
        this.returned.add(message);
      }),
    );
    // A missing confirm over the connection before says little about its queue.
    connection.on('up', () => {
      this.silent.clear();
      this.late.clear();
    });
  }

  check(): string | undefined {
    return this.channel.check();
  }

  /** Whether the broker did not confirm a reply to this queue in time just now. */
  isSilent({ replyTo }: ReplyAddress): boolean {
    return this.silent.has(replyTo);
  }

  /** Whether a reply would be written at once. */
  get isWritable(): boolean {
    return this.check() === undefined && this.fullNow() === undefined;
  }

  /** Waits until a reply would be written at once. @returns false after `timeoutMs` milliseconds, or when the channel is closed for good */
  async whenWritable(timeoutMs: number): Promise<boolean> {
    const until = performance.now() + timeoutMs;
    if (!(await this.channel.whenReady(timeoutMs))) return false;
    const full = this.fullNow();
    return !full || within(until - performance.now(), full.taken);
  }

  close(): Promise<void> {
    return this.channel.close();
  }

  /**
   * Waits while the broker takes nothing. A confirmed reply is written again when its channel ends first: its caller ignores a second one.
   *
   * @param patience how long the reply is of use, in milliseconds
   * @param isOwn whether a caller of this system waits
   * @returns false when the time is over, three channels have ended first, or the channel is closed for good
   * @throws Error when the channel is closing, or the protocol cannot carry the reply
   */
  async publish(address: ReplyAddress, reply: EncodedReply, patience: number, isOwn = false): Promise<boolean> {
    if (isOwn) this.returned.know(address.replyTo);
    const until = performance.now() + patience;
    for (let writes = 0; writes < MOST_WRITES; writes++) {
      if (!(await this.channel.whenReady(until - performance.now()))) return false;
      if (await this.add(address, reply, until)) return true;
    }
    return false;
  }

  private async add({ replyTo, correlationId, batches }: ReplyAddress, reply: EncodedReply, until: number): Promise<boolean> {
    // Again after each wait: the replies that waited together are written one after the other.
    for (let full = this.fullNow(); full; full = this.fullNow())
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

  private writeBatch(replyTo: string, { replies }: Batch): Promise<boolean> {
    const [only] = replies;
    if (replies.length > 1) return this.write(replyTo, { type: BATCH_TYPE, persistent: false }, encodeBatch(replies));
    return this.write(replyTo, { correlationId: only.correlationId, ...only.reply.properties }, only.reply.body);
  }

  /** @returns false when there is no channel, or it ends before the confirm */
  private async write(replyTo: string, properties: Properties, body: Buffer): Promise<boolean> {
    const { current } = this.channel;
    if (!current) return false;
    const target = { exchange: 'replies', routingKey: replyTo, mandatory: true };
    let onConfirm: ((error: Error | null) => void) | undefined;
    const confirmed = this.isConfirmed && new Promise<boolean>((resolve) => (onConfirm = this.onConfirm(resolve)));
    const wasLate = this.late.has(replyTo);
    const taken = writeMessage(current, target, properties, body, onConfirm);
    if (!taken) this.countUntaken(current, body.length);
    if (!confirmed || (await within(CONFIRM_MS, confirmed))) return confirmed || true;
    void this.waitLonger(replyTo, current, confirmed, wasLate);
    return true;
  }

  /**
   * The queue counts as silent until the confirm comes. After another late one it counts longer: on a slow node each confirm may be late, and its
   * replies would keep the places of the others.
   */
  private async waitLonger(replyTo: string, channel: Channel, confirmed: Promise<boolean>, wasLate: boolean): Promise<void> {
    this.silent.set(replyTo, true);
    const isBlocked = () => this.channel.connection.state === 'blocked';
    // A blocked connection confirms nothing to anybody, and opens no channel: after a while it would be given up, with what is written to it.
    for (let wasBlocked = isBlocked(); !(await within(this.mostSilentMs, confirmed)); wasBlocked = isBlocked())
      if (!wasBlocked && !isBlocked()) return this.channel.renew(channel);
    if (wasLate || !(await confirmed)) return;
    this.late.set(replyTo, true);
    this.silent.delete(replyTo);
  }

  private onConfirm(resolve: (isSent: boolean) => void) {
    return (error: Error | null) => {
      // Known to the channel an iteration later.
      if (error?.message === 'channel closed') return void setImmediate(resolve, false);
      // A full queue of the caller.
      if (error) this.channel.connection.observer.nacked('replies');
      resolve(true);
    };
  }

  /** The bytes that wait for the socket, when they are so many that nothing more is written. */
  private fullNow() {
    const { current } = this.channel;
    const untaken = current && this.untaken.get(current);
    return untaken && untaken.bytes >= MAX_UNTAKEN_BYTES ? untaken : undefined;
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
