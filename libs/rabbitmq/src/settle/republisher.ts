import { Logger } from '@nestjs/common';
import type { ServiceName } from '@app/contracts/message';
import { Backoff } from '@app/amqp/connection/backoff';
import { within } from '@app/runtime/within';
import { NotWritten, type ConfirmedPublisher, type Publication, type PublishOutcome } from '@app/amqp/publishing/publisher';
import type { Decision } from './ack-policy';
import type { Delivery } from '../delivery/delivery';
import type { HeldDeliveries } from './held-deliveries';
import { republication } from './republication';
import { againQueue, crashedQueue, deadQueue, refusedQueue, retryQueue, suspectQueue } from '../topology/topology';

/** How long a refused command is held while the broker does not take its dead letter, in milliseconds. Others are held without limit. */
const HOLD_REFUSED_MS = 5 * 60_000;
/** Queue limits do not count headers. A refused dead letter with more header text (as JSON) keeps only the headers that are understood. */
const MAX_HEADER_CHARACTERS = 4096;

/** `unconfirmed`: there was no answer in the time after which a silent node is left. */
type Failure = 'unencodable' | 'not written' | 'unconfirmed';
/** These have causes outside this service (a message of a publisher, a lost connection), and what failed is tried again: a warning is enough. */
const FROM_OUTSIDE: ReadonlySet<PublishOutcome | Failure> = new Set([
  'unencodable',
  'not written',
  'unconfirmed',
  'lost',
] as const);

type Republished = Exclude<Extract<Decision, { do: `${string}ThenAck` }>, { do: 'replyThenAck' }>;

interface Parts {
  service: ServiceName;
  /** Broker account of this service. */
  account: string;
  publisher: Pick<ConfirmedPublisher, 'publish' | 'unconfirmedMs'>;
  /** Counts the deliveries that cannot be published again for now. */
  heldDeliveries: Pick<HeldDeliveries, 'change'>;
  /** From then on no delivery waits for the broker. */
  closing: AbortSignal;
}

/** Publishes messages again: to the queues of retries, suspects and letters. */
export class Republisher {
  private readonly logger = new Logger('RabbitMQ');

  constructor(private readonly parts: Parts) {}

  /**
   * Publishes the message to another queue. While that fails the delivery is held: a requeue may count towards the delivery limit.
   *
   * @returns true when the broker has confirmed it, so that this delivery can be acknowledged. False when the channel or the process ends,
   *   which requeues the delivery, and when a refused one was held too long
   */
  async publish(delivery: Delivery, decision: Republished): Promise<boolean> {
    const until = performance.now() + (decision.do === 'refuseThenAck' ? HOLD_REFUSED_MS : Infinity);
    const backoff = new Backoff(500, 5000);
    let held = false;
    const hold = (outcome: PublishOutcome | Failure) => {
      if (!held || FROM_OUTSIDE.has(outcome)) this.log(delivery, this.publicationOf(delivery, decision, false), outcome);
      if (!held) this.parts.heldDeliveries.change(delivery.queue, 1);
      held = true;
    };
    try {
      for (;;) {
        const published = this.tryPublish(delivery, decision);
        while (!(await within(this.parts.publisher.unconfirmedMs, published))) {
          // Published once more it would be there twice, because the broker may still have it.
          if (!held) hold('unconfirmed');
          if (this.isOver(delivery) || performance.now() > until) return false;
        }
        const outcome = await published;
        if (outcome === 'confirmed') return true;
        hold(outcome);
        await backoff.wait(this.parts.closing);
        if (this.isOver(delivery) || performance.now() > until) return false;
      }
    } finally {
      if (held) this.parts.heldDeliveries.change(delivery.queue, -1);
    }
  }

  /** The process or the channel of the delivery has ended: the broker delivers the message again. */
  isOver(delivery: Delivery): boolean {
    return this.parts.closing.aborted || delivery.isForgotten;
  }

  private log({ context }: Delivery, { exchange, routingKey }: Publication, outcome: PublishOutcome | Failure): void {
    const { requestId, userId: publisher } = context;
    const line = { msg: 'publishing again failed', publisher, requestId, exchange, routingKey, outcome };
    if (FROM_OUTSIDE.has(outcome)) this.logger.warn(line);
    else this.logger.error(line);
  }

  private publicationOf(delivery: Delivery, decision: Republished, withHeaders: boolean): Publication {
    const { service, account } = this.parts;
    const { crashes, context } = delivery;
    const { attempt } = context;
    const common = { account, attempt, withHeaders };
    switch (decision.do) {
      case 'suspectThenAck':
        return republication(delivery, { exchange: 'retry', routingKey: suspectQueue(service) }, { ...common, crashes });
      case 'againThenAck':
        return republication(delivery, { exchange: 'retry', routingKey: againQueue(service) }, { ...common, crashes });
      case 'crashedThenAck':
        return republication(delivery, { exchange: 'dead', routingKey: crashedQueue(service) }, { ...common, crashes });
      case 'retryThenAck': {
        const routingKey = retryQueue(service, decision.delay);
        return republication(delivery, { exchange: 'retry', routingKey }, { ...common, attempt: attempt + 1 });
      }
      case 'deadThenAck':
        return republication(delivery, { exchange: 'dead', routingKey: deadQueue(service) }, { ...common, dead: decision.error });
      case 'refuseThenAck': {
        const target = { exchange: 'dead', routingKey: refusedQueue(service) } as const;
        const { error: dead, stub } = decision;
        return republication(delivery, target, { ...common, dead, stub, withHeaders: withHeaders && hasFewHeaders(delivery) });
      }
    }
  }

  private async tryPublish(delivery: Delivery, decision: Republished, withHeaders = true): Promise<PublishOutcome | Failure> {
    try {
      return await this.parts.publisher.publish(this.publicationOf(delivery, decision, withHeaders));
    } catch (error) {
      if (!(error instanceof NotWritten)) throw error;
      // At once: one publisher with many held letters would stop the queue for the others.
      if (error.cause && withHeaders) return this.tryPublish(delivery, decision, false);
      return error.cause ? 'unencodable' : 'not written';
    }
  }
}

function hasFewHeaders({ message }: Delivery): boolean {
  try {
    return JSON.stringify(message.properties.headers ?? {}).length <= MAX_HEADER_CHARACTERS;
  } catch {
    // For example a 64-bit number (BigInt).
    return false;
  }
}
