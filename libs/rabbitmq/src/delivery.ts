import type { Channel, ConsumeMessage } from 'amqplib';
import { isChannelClosed } from './channel';
import type { DeliveryContext } from './delivery-context';
import type { Envelope, ReplyAddress } from './envelope';

export type QueueKind = 'commands' | 'queries';

/**
 * One message, delivered once. Settled on the channel it came by: a delivery tag means another message on any other. When that channel is
 * gone the broker delivers the message again, and this delivery is forgotten.
 */
export class Delivery {
  /** Whether a handler may have run for this message before. */
  mayHaveRun: boolean;

  constructor(
    readonly kind: QueueKind,
    readonly message: ConsumeMessage,
    private readonly envelope: Envelope,
    private readonly channel: Channel,
  ) {
    this.mayHaveRun = envelope.context.redelivered;
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
    return isChannelClosed(this.channel);
  }

  /** The caller has given up, with the promise that nothing happens after. */
  get isExpired(): boolean {
    const { deadline } = this.context;
    return deadline !== undefined && Date.now() > deadline;
  }

  ack(): void {
    this.settle(() => this.channel.ack(this.message));
  }

  /** Back to the queue. nack, because from 4.3 on it does not count towards the delivery limit, as reject does. */
  requeue(): void {
    this.settle(() => this.channel.nack(this.message, false, true));
  }

  private settle(send: () => void): void {
    if (this.isForgotten) return;
    try {
      send();
    } catch {
      // The channel is closing, and its close event is still to come.
    }
  }
}

/** What the log says of a delivery: never its body or its tenant. */
export const about = ({ context: { requestId, pattern, messageId, appId } }: Delivery) => ({
  requestId,
  pattern,
  messageId,
  appId,
});
