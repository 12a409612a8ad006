import type { ConsumeMessage } from 'amqplib';
import { isChannelClosed } from '@app/amqp/channel';
import type { Acks } from './acks';
import type { DeliveryContext } from './delivery-context';
import type { Envelope, ReplyAddress } from './envelope';

export type QueueKind = 'commands' | 'queries' | 'events';
/** What a consumer consumes: suspects are commands that are handled alone. */
export type Lane = QueueKind | 'suspects';

/** So many deliveries that were not settled make a command suspect: a process that is killed once, or a connection that is lost, does not. */
const SUSPECT_AFTER = 2;

/**
 * One message, delivered once. Settled on the channel it came by: a delivery tag means another message on any other. When that channel is
 * gone the broker delivers the message again, and this delivery is forgotten.
 */
export class Delivery {
  /** Whether a handler may have run for this message before. */
  mayHaveRun: boolean;

  constructor(
    readonly lane: Lane,
    readonly message: ConsumeMessage,
    private readonly envelope: Envelope,
    private readonly acks: Acks,
  ) {
    this.mayHaveRun = envelope.context.redelivered || lane === 'suspects';
  }

  /** What becomes of it: an event is a command that nobody waits for. */
  get kind(): 'commands' | 'queries' {
    return this.lane === 'queries' ? 'queries' : 'commands';
  }

  /** It may be what ended its consumers, and has to be moved out of the way of the others. */
  get isSuspect(): boolean {
    const { fields, properties } = this.message;
    const count: unknown = properties.headers?.['x-delivery-count'];
    // Of a message that was not delivered before, the header is the publisher's.
    return (
      (this.lane === 'commands' || this.lane === 'events') &&
      fields.redelivered &&
      typeof count === 'number' &&
      count >= SUSPECT_AFTER
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

  ack(): void {
    this.acks.ack(this.message);
  }

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
