import type { Channel, ChannelModel, ConfirmChannel, ConsumeMessage } from 'amqplib';
import { checkQueues } from '@app/amqp/check-topology';
import { within } from '@app/amqp/within';
import { DeadLetterError } from './errors';

/** Bounds of one look at one queue. What they leave out stays, and is said. */
export interface Bounds {
  /** Letters that are held because they stay; also how many the broker sends ahead. */
  held: number;
  milliseconds: number;
}

/** 25 minutes, because after 30 the broker closes the channel of whoever still holds a message. */
export const BOUNDS: Bounds = { held: 10_000, milliseconds: 25 * 60_000 };

/** A letter as it came, and its place in the queue, 1 at its head. */
export interface HeldMessage {
  message: ConsumeMessage;
  position: number;
}

const LOCKED = 405;
/** After so long without a delivery it is asked whether there are more. */
const QUIET_MS = 100;
const RETURN_TIMEOUT_MS = 5000;

/**
 * Looks through a queue of dead letters without changing it: every letter is held, unacknowledged, and goes back in the end unless it was
 * removed.
 *
 * What goes back stands before everything that was never delivered, and in its old order, because
 * - it goes back by the end of the channel, whether we close it, die or lose the connection: the broker returns what a consumer still holds
 *   in order. What is nacked it may return in any order, be it by one nack or by many;
 * - it has one consumer: each basic.get counts as one of its own, and consumers end in any order;
 * - there is one reader at a time. A lock sees to that: a queue that belongs to the connection, and goes with it.
 */
export class OpenedQueue {
  /** Why not every letter was looked at; absent when all were. */
  incomplete?: string;
  /** How many letters there were when {@link letters} began. */
  total = 0;
  /** Rejects when the channel ends before {@link close}. */
  readonly failed: Promise<never>;
  private fail!: (error: Error) => void;
  private hasFailed = false;
  /** Letters that were looked at and stay. */
  private held = 0;
  private readonly arrived: ConsumeMessage[] = [];
  private onArrival: () => void = () => undefined;

  private constructor(
    readonly name: string,
    readonly channel: ConfirmChannel,
    /** Holds the lock, and outlives the other. */
    private readonly locking: Channel,
    private readonly bounds: Bounds,
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
    // Without it an exception in a callback makes amqplib close the connection.
    channel.on('handler-error', (error: Error) => this.fail(error));
  }

  /** @throws Error when somebody else has it open */
  static async open(model: ChannelModel, name: string, bounds: Bounds = BOUNDS): Promise<OpenedQueue> {
    const channel = await model.createConfirmChannel();
    const opened = new OpenedQueue(name, channel, await model.createChannel(), bounds);
    await lock(opened.locking, name);
    return opened;
  }

  /**
   * The letters that are there now, from the head. Later ones are left alone: a letter that was replayed and failed again is one of them.
   * A letter stays unless it is removed before the next one is asked for.
   *
   * @param most how many there were when the run began: what it replays may come to this queue out of another one
   */
  async *letters(signal: AbortSignal, most = Infinity): AsyncGenerator<HeldMessage> {
    const until = performance.now() + this.bounds.milliseconds;
    this.total = Math.min(most, await this.readyCount());
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

  /** Takes the letter that {@link letters} gave last off the queue. */
  remove({ message }: Pick<HeldMessage, 'message'>): void {
    this.channel.ack(message);
    this.held--;
  }

  /** Puts back what was not removed, in its order, and waits until it is there: who looks next must find it. */
  async close(): Promise<void> {
    if (this.hasFailed) return this.failed;
    const back = this.held + this.arrived.length;
    // Under load the broker's end of a channel keeps acks for a moment, and would take them along. It lets them go before the second answer.
    for (let answers = 0; answers < 2; answers++) await this.readyCount();
    await this.channel.close();
    const until = performance.now() + RETURN_TIMEOUT_MS;
    while (performance.now() < until && (await this.locking.checkQueue(this.name)).messageCount < back);
    await this.locking.close();
  }

  private reachedBound(until: number): string | undefined {
    if (this.held >= this.bounds.held) return `only the first ${this.bounds.held} were looked at`;
    if (performance.now() > until) return 'it took too long: run it again for the rest';
    return undefined;
  }

  private onDelivery(message: ConsumeMessage | null): void {
    if (!message) return this.fail(new DeadLetterError(`${this.name}: the broker ended the look, because the queue is gone.`));
    this.arrived.push(message);
    this.onArrival();
  }

  /** @returns undefined when there are no more */
  private async next(): Promise<ConsumeMessage | undefined> {
    // Counted and sent by two processes of the broker: what it had sent when it said zero is here after the second answer.
    for (let zeros = 0; this.arrived.length === 0 && zeros < 2;) {
      await within(QUIET_MS, new Promise<void>((resolve) => (this.onArrival = resolve)));
      if (this.arrived.length === 0) zeros = (await this.readyCount()) === 0 ? zeros + 1 : 0;
    }
    return this.arrived.shift();
  }

  private async readyCount(): Promise<number> {
    const { messageCount } = await Promise.race([this.channel.checkQueue(this.name), this.failed]);
    return messageCount;
  }
}

/**
 * How many letters each queue has.
 *
 * @throws Error that names a queue which does not exist
 */
export async function countLetters(model: ChannelModel, names: readonly string[]): Promise<number[]> {
  const channel = await model.createChannel();
  channel.on('error', () => undefined);
  await checkQueues(channel, names);
  const counts: number[] = [];
  for (const name of names) counts.push((await channel.checkQueue(name)).messageCount);
  await channel.close();
  return counts;
}

/** @throws DeadLetterError when another connection has the lock */
async function lock(channel: Channel, queue: string): Promise<void> {
  channel.on('error', () => undefined);
  try {
    await channel.assertQueue(`${queue}.lock`, { exclusive: true, durable: false });
  } catch (error) {
    if ((error as { code?: unknown }).code !== LOCKED) throw error;
    throw new DeadLetterError(`${queue}: somebody else is at work on it. Try again when they are done.`);
  }
}
