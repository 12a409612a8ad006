import type { Channel, ChannelModel, ConfirmChannel, ConsumeMessage } from 'amqplib';
import { checkQueues } from '@app/amqp/connection/check-topology';
import { closeChannel } from '@app/amqp/connection/opened-channel';
import { within } from '@app/runtime/within';
import { DeadLetterError } from './errors';

/** Limits of one run on one queue. If a limit is reached, the rest stays, and the run reports it. */
export interface Bounds {
  /** Most held dead letters, which stay in the queue; also the prefetch. */
  held: number;
  milliseconds: number;
  /** Longest wait for an answer about one letter, or about the length of the queue, in milliseconds. */
  answerMs: number;
}

/** A prefetch has 16 bits. 25 minutes, because after 30 minutes the broker closes a channel with an unacknowledged message. */
export const BOUNDS: Bounds = { held: 65_000, milliseconds: 25 * 60_000, answerMs: 30_000 };

/** A delivered dead letter, and its position in the queue, 1 at its head. */
export interface HeldMessage {
  message: ConsumeMessage;
  position: number;
}

const LOCKED = 405;
/** Time without a delivery after which the queue length is checked, in milliseconds. */
const QUIET_MS = 100;
const RETURN_TIMEOUT_MS = 5000;

/**
 * Reads a dead-letter queue without changing it. Every message is held unacknowledged, and is returned at the end unless it was removed.
 *
 * Returned messages stand in front of undelivered ones, in their old order, because
 * - they are returned by closing the channel, also when the process dies or the connection is lost: then the broker returns the messages of a
 *   consumer in order. With nack it may return them in any order;
 * - there is only one consumer: each basic.get counts as its own consumer, and consumers end in any order;
 * - there is only one reader at a time. An exclusive queue serves as the lock; it is deleted with its connection.
 */
export class OpenedQueue {
  /** The reason why not all messages were read; absent when all were. */
  incomplete?: string;
  /** Number of messages when {@link letters} started. */
  total = 0;
  /** Rejects when the channel ends before {@link close}. */
  readonly failed: Promise<never>;
  private fail!: (error: Error) => void;
  private hasFailed = false;
  /** Number of messages that were read and stay. */
  private held = 0;
  private readonly arrived: ConsumeMessage[] = [];
  private onArrival: () => void = () => undefined;

  private constructor(
    readonly name: string,
    readonly channel: ConfirmChannel,
    /** Holds the lock, and is closed after the other channel. */
    private readonly locking: Channel,
    readonly bounds: Bounds,
  ) {
    this.failed = new Promise((_, reject) => {
      this.fail = (error) => {
        this.hasFailed = true;
        reject(error);
      };
    });
    this.failed.catch(() => undefined);
    channel.on('error', (error: Error) => this.fail(error));
    channel.on('close', () => this.fail(new DeadLetterError(`${name}: the connection to the broker was lost.`)));
    // Without this listener, an exception in a callback makes amqplib close the connection.
    channel.on('handler-error', (error: Error) => this.fail(error));
  }

  /** @throws DeadLetterError when another run has the queue open */
  static async open(model: ChannelModel, name: string, bounds: Bounds = BOUNDS): Promise<OpenedQueue> {
    const channel = await model.createConfirmChannel();
    const opened = new OpenedQueue(name, channel, await model.createChannel(), bounds);
    await lock(opened.locking, name);
    return opened;
  }

  /**
   * The messages that are in the queue now, from the head. Later ones are not read: a replayed message that failed again is one of them. A message
   * stays unless it is removed before the next one is requested.
   *
   * @param most number of messages when the run started: replayed messages of another queue may have been added since
   */
  async *letters(signal: AbortSignal, most = Infinity): AsyncGenerator<HeldMessage> {
    const until = performance.now() + this.bounds.milliseconds;
    this.total = Math.min(most, await this.count());
    if (this.total === 0) return;
    await this.channel.prefetch(this.bounds.held);
    const { consumerTag } = await this.channel.consume(this.name, (message) => this.onDelivery(message));
    try {
      for (let position = 1; position <= this.total && !signal.aborted; position++) {
        const bound = this.reachedBound(until);
        if (bound) {
          this.incomplete = bound;
          return;
        }
        const message = await Promise.race([this.next(), this.failed]);
        if (!message) return;
        this.held++;
        yield { message, position };
      }
    } finally {
      if (!this.hasFailed) await Promise.race([this.channel.cancel(consumerTag), this.failed]);
    }
  }

  /** Removes the message that {@link letters} yielded last. */
  remove({ message }: Pick<HeldMessage, 'message'>): void {
    this.channel.ack(message);
    this.held--;
  }

  /** Gives the channel up, because the broker answers nothing over it. {@link close} does not wait for the broker then. */
  giveUp(error: Error): void {
    this.fail(error);
  }

  /** Returns the messages that were not removed, in order, and waits until the queue has them, so that the next reader finds them. */
  async close(): Promise<void> {
    if (this.hasFailed) return this.failed;
    const back = this.held + this.arrived.length;
    // Under load the broker's channel process delays acks, and closing would lose them. It has processed them before its second answer.
    for (let answers = 0; answers < 2; answers++) await this.answer();
    await closeChannel(this.channel);
    const until = performance.now() + RETURN_TIMEOUT_MS;
    while (performance.now() < until && (await this.locking.checkQueue(this.name)).messageCount < back);
    await closeChannel(this.locking);
  }

  private reachedBound(until: number): string | undefined {
    if (this.held >= this.bounds.held) return `only the first ${this.bounds.held} were read`;
    if (performance.now() > until) return 'it took too long: run it again for the rest';
    return undefined;
  }

  private onDelivery(message: ConsumeMessage | null): void {
    if (!message)
      return this.fail(new DeadLetterError(`${this.name}: the broker cancelled the consumer, because the queue is gone.`));
    this.arrived.push(message);
    this.onArrival();
  }

  /** @returns undefined when there are no more messages */
  private async next(): Promise<ConsumeMessage | undefined> {
    // Two broker processes count and deliver: deliveries sent before the first zero have arrived after the second answer.
    for (let zeros = 0; this.arrived.length === 0 && zeros < 2;) {
      await within(QUIET_MS, new Promise<void>((resolve) => (this.onArrival = resolve)));
      if (this.arrived.length === 0) zeros = (await this.count()) === 0 ? zeros + 1 : 0;
    }
    return this.arrived.shift();
  }

  private async count(): Promise<number> {
    try {
      return await Promise.race([lettersIn(this.channel, this.name, this.bounds.answerMs), this.failed]);
    } catch (error) {
      this.giveUp(error as Error);
      throw error;
    }
  }

  private async answer(): Promise<void> {
    await Promise.race([this.channel.checkQueue(this.name), this.failed]);
  }
}

/**
 * Number of messages that wait in a queue. The broker says 0 as well when the leader of the queue has not answered it within 250 ms. So a message
 * is asked for then, which only the leader gives, and it comes with their number.
 *
 * @throws DeadLetterError when the leader does not answer
 */
async function lettersIn(channel: Channel, name: string, answerMs: number): Promise<number> {
  const { messageCount } = await channel.checkQueue(name);
  if (messageCount > 0) return messageCount;
  const asked = channel.get(name);
  if (!(await within(answerMs, asked)))
    throw new DeadLetterError(`${name}: its leader in the broker did not answer for ${answerMs / 1000} s.`);
  const head = await asked;
  if (!head) return 0;
  channel.nack(head);
  return head.fields.messageCount + 1;
}

/**
 * Number of dead letters in each queue.
 *
 * @throws Error that names a missing queue; DeadLetterError when the leader of a queue does not answer
 */
export async function countLetters(
  model: ChannelModel,
  names: readonly string[],
  { answerMs }: Pick<Bounds, 'answerMs'> = BOUNDS,
): Promise<number[]> {
  const channel = await model.createChannel();
  channel.on('error', () => undefined);
  await checkQueues(channel, names);
  const counts: number[] = [];
  for (const name of names) counts.push(await lettersIn(channel, name, answerMs));
  await closeChannel(channel);
  return counts;
}

/** @throws DeadLetterError when another connection has the lock */
async function lock(channel: Channel, queue: string): Promise<void> {
  channel.on('error', () => undefined);
  try {
    await channel.assertQueue(`${queue}.lock`, { exclusive: true, durable: false });
  } catch (error) {
    if ((error as { code?: unknown }).code !== LOCKED) throw error;
    throw new DeadLetterError(`${queue}: another run is working on it. Try again later.`);
  }
}
