import type { ConsumeMessage } from 'amqplib';
import { isChannelClosed } from '@app/amqp/channel';
import { JsonText } from '@app/amqp/reply';
import type { AckBatcher } from './ack-batcher';
import type { ConsumedQueue, QueueKind } from '../topology/consumed-queues';
import type { DeliveryContext } from './delivery-context';
import type { Envelope, ReplyAddress } from './envelope';

/** So many deliveries that were not settled make a command suspect: a process that is killed once, or a connection that is lost, does not. */
const SUSPECT_AFTER = 2;

/**
 * One message, delivered once. Settled on the channel it came by: a delivery tag means another message on any other. When that channel is
 * gone the broker delivers the message again, and this delivery is forgotten.
 */
export class Delivery {
  /** Whether a handler may have run for this message before. */
  mayHaveRun: boolean;
  /** About how many bytes its handler has answered with. */
  replyBytes = 0;

  constructor(
    readonly queue: ConsumedQueue,
    readonly message: ConsumeMessage,
    private readonly envelope: Envelope,
    private readonly acks: AckBatcher,
  ) {
    this.mayHaveRun = envelope.context.redelivered || queue.alone === true;
  }

  /** An event is a command that nobody waits for, and comes from a service. */
  get kind(): QueueKind {
    return this.queue.kind;
  }

  /** The exchange of the lane it came by first. */
  get lane(): string {
    return this.envelope.lane ?? this.queue.lane;
  }

  /** It may be what ended its consumers, and has to be moved out of the way of the others. */
  get isSuspect(): boolean {
    const { fields, properties } = this.message;
    const count: unknown = properties.headers?.['x-delivery-count'];
    // Of a message that was not delivered before, the header is the publisher's.
    return (
      this.kind !== 'queries' && !this.queue.alone && fields.redelivered && typeof count === 'number' && count >= SUSPECT_AFTER
    );
  }

  get context(): DeliveryContext {
    return this.envelope.context;
  }

  get address(): ReplyAddress | undefined {
    return this.envelope.address;
  }

  get problem(): Envelope['problem'] {
    return this.envelope.problem;
  }

  /** Settling it has no effect any more. */
  get isForgotten(): boolean {
    return isChannelClosed(this.acks.channel);
  }

  /** The caller has given up, with the promise that nothing happens after. */
  get isExpired(): boolean {
    const { deadline } = this.context;
    return deadline !== undefined && Date.now() > deadline;
  }

  /** Remembers what the handler made. */
  answered(value: unknown): void {
    if (value instanceof JsonText) this.replyBytes = value.text.length;
  }

  ack(): void {
    this.acks.ack(this.message);
  }

  /** For what nobody foresaw: it counts as a delivery in vain. */
  requeue(): void {
    this.acks.requeue(this.message);
  }
}

/** What the log says of a delivery: never its body or its tenant. */
export const about = ({ context: { requestId, pattern, messageId, appId } }: Delivery) => ({
  requestId,
  pattern,
  messageId,
  appId,
});
