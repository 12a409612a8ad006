import { createHash } from 'node:crypto';
import type { Channel, ConsumeMessage } from 'amqplib';
import { isChannelClosed } from '@app/amqp/connection/opened-channel';
import { within } from '@app/runtime/within';
import { traceFields } from '@app/tracing/tracing';
import type { ConsumedQueue, QueueKind } from '../topology/consumed-queues';
import type { DeliveryContext } from './delivery-context';
import type { Envelope, ReplyAddress } from './envelope';

/** A command is a suspect after this number of unsettled deliveries. One is not enough: a process may be killed, or a connection lost. */
const SUSPECT_AFTER = 2;

/** How long a reply without a deadline is of use, in milliseconds. */
const REPLY_PATIENCE_MS = 5000;

/** Most of it. The broker ends a channel with a delivery that is not settled in half an hour, and delivers all of its deliveries again. */
const MOST_PATIENCE_MS = 15 * 60_000;

/** Bytes of a malformed command's body that are kept. */
export const STUB_BYTES = 1024;
const NO_BODY = Buffer.alloc(0);

/** Of a body that was let go: its beginning, its size and its hash. */
export interface Stub {
  readonly beginning: Buffer;
  readonly bytes: number;
  readonly sha256: string;
}

/** Settles deliveries on their channel. */
export interface Acks {
  readonly channel: Channel;
  ack(message: ConsumeMessage): void;
  /**
   * Acknowledges, and waits until the broker has the ack: from then on it delivers the message to nobody.
   *
   * @returns false when the channel has ended first
   */
  ackForGood(message: ConsumeMessage): Promise<boolean>;
  requeue(message: ConsumeMessage): void;
}

/**
 * One delivery of a command, query or event. It must be settled on its own channel: on another channel the delivery tag means another message.
 * When its channel is lost, the broker delivers the message again, and this delivery is forgotten.
 */
export class Delivery {
  /** Whether a handler may have run for this message before. */
  mayHaveRun: boolean;
  /** Size of the reply with the handler's result, in bytes; undefined without one. */
  replyBytes?: number = undefined;
  /** How long its handler had run when the database cancelled a statement that took too long. Waits for the database are not in it. */
  cancelledAfterMs?: number = undefined;
  private kept?: Stub = undefined;
  readonly context: DeliveryContext;
  readonly address: ReplyAddress | undefined;
  readonly problem: Envelope['problem'];
  /** Kind of its queue. An event is handled like a command without a caller that waits. */
  readonly kind: QueueKind;
  /** The exchange that it was first published to: `calls`, or that of a lane. */
  readonly exchange: string;
  private readonly earlierCrashes: number;

  constructor(
    readonly queue: ConsumedQueue,
    readonly message: ConsumeMessage,
    { context, address, problem, exchange = queue.exchange, crashes = 0 }: Envelope,
    private readonly acks: Acks,
  ) {
    this.context = context;
    this.address = address;
    this.problem = problem;
    this.kind = queue.kind;
    this.exchange = exchange;
    this.earlierCrashes = crashes;
    this.mayHaveRun = context.redelivered || queue.alone === true || crashes > 0;
  }

  /** This command may have crashed its consumers. It must be handled apart from the others. */
  get isSuspect(): boolean {
    if (this.kind === 'queries' || this.queue.alone) return false;
    return this.earlierCrashes > 0 || this.returns >= SUSPECT_AFTER;
  }

  /** Processes that ended while they handled it as a suspect. From RabbitMQ 4.3 some of its returns have no count, and it must stay a suspect. */
  get crashes(): number {
    return this.earlierCrashes + (this.queue.alone && this.context.redelivered ? Math.max(1, this.returns) : 0);
  }

  /** How often it came back to its queue unsettled. */
  private get returns(): number {
    const { fields, properties } = this.message;
    const count: unknown = properties.headers?.['x-delivery-count'];
    // On a first delivery this header comes from the publisher; only the broker's value counts.
    return fields.redelivered && typeof count === 'number' ? count : 0;
  }

  /** It may have ended a process just now, and may be handled later. */
  get mayCrash(): boolean {
    const { awaited, redelivered } = this.context;
    if (this.queue.alone) return redelivered;
    return this.kind === 'commands' && (this.earlierCrashes > 0 || (redelivered && !awaited));
  }

  /** Whether a caller waits that can be told that nothing was executed. */
  get mayBeRefused(): boolean {
    return this.context.awaited && !this.mayHaveRun;
  }

  /** All that is kept of a body that cannot be read. The rest of it is let go, because a delivery may wait long for the broker. */
  keepStub(): Stub {
    const { content } = this.message;
    this.kept ??= {
      // A copy, because subarray() keeps the whole body in memory.
      beginning: Buffer.from(content.subarray(0, STUB_BYTES)),
      bytes: content.length,
      sha256: createHash('sha256').update(content).digest('hex'),
    };
    this.letGoOfBody();
    return this.kept;
  }

  /** Nothing reads the body any more. */
  letGoOfBody(): void {
    this.message.content = NO_BODY;
  }

  /** The channel is closed: settling has no effect any more. */
  get isForgotten(): boolean {
    return isChannelClosed(this.acks.channel);
  }

  /** Waits, at most until the delivery is forgotten. @returns undefined then */
  async whileKept<T>(wait: Promise<T>): Promise<T | undefined> {
    const { channel } = this.acks;
    if (this.isForgotten) return undefined;
    let forget!: () => void;
    const forgotten = new Promise<undefined>((resolve) => (forget = () => resolve(undefined)));
    channel.once('close', forget);
    try {
      return await Promise.race([wait, forgotten]);
    } finally {
      // A channel lives for days: nothing of a delivery may stay at it.
      channel.off('close', forget);
    }
  }

  /**
   * Seconds since the command was published, by the clock of its publisher, who gives whole seconds: at least this time. undefined for a query,
   * for an event, for a retry, and without a time.
   */
  get age(): number | undefined {
    const { fields, properties } = this.message;
    const timestamp: unknown = properties.timestamp;
    if (this.kind !== 'commands' || fields.exchange === 'retry' || typeof timestamp !== 'number') return undefined;
    return Math.max(0, Date.now() / 1000 - (timestamp + 1));
  }

  /** The deadline has passed: the caller has given up and relies on nothing being executed later. */
  get isExpired(): boolean {
    return this.isExpiredIn(0);
  }

  /** The same, some milliseconds later. */
  isExpiredIn(ms: number): boolean {
    const { deadline } = this.context;
    return deadline !== undefined && Date.now() + ms > deadline;
  }

  /** How long a reply is of use, in milliseconds. */
  get patience(): number {
    const { deadline } = this.context;
    // A publisher may invent any deadline.
    return deadline === undefined ? REPLY_PATIENCE_MS : Math.min(MOST_PATIENCE_MS, deadline - Date.now());
  }

  ack(): void {
    this.acks.ack(this.message);
  }

  /** See {@link Acks.ackForGood}. @returns also false when its caller does not wait any longer */
  async ackForGood(): Promise<boolean> {
    let isForGood = false;
    const acked = this.acks.ackForGood(this.message).then((known) => (isForGood = known));
    await within(this.patience, acked);
    return isForGood;
  }

  /** For unexpected errors. The redelivery may count towards the delivery limit. */
  requeue(): void {
    this.acks.requeue(this.message);
  }
}

/** Fields of a delivery for the log: never its body or its tenant. The broker vouches for the publisher, and for no `appId`. */
export const about = ({ context: { requestId, pattern, messageId, userId: publisher, appId, span } }: Delivery) => ({
  requestId,
  pattern,
  messageId,
  publisher,
  appId,
  ...traceFields(span),
});
