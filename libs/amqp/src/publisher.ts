import type { ConfirmChannel, Message } from 'amqplib';
import type { RabbitChannel } from './channel';
import { InFlight } from './in-flight';
import { writeMessage, type Properties } from './write-message';

/** Bytes written and not confirmed, at most: a broker that stopped reading must not fill our memory. */
const MAX_UNCONFIRMED_BYTES = 64 * 1024 * 1024;

/**
 * `confirmed`: the broker has it. `returned` and `nacked`: no queue has it, and none will. `lost`: the channel ended first, so the broker
 * may have it. `forbidden`: the account may not publish that, and the channel ended.
 */
export type PublishOutcome = 'confirmed' | 'returned' | 'nacked' | 'forbidden' | 'lost';

const ACCESS_REFUSED = 403;

/** Nothing was written. */
export class NotWritten extends Error {}

export interface Publication {
  exchange: string;
  routingKey: string;
  body: Buffer;
  /** `correlationId` must be unique among those in flight: it tells which message was returned. */
  properties: Properties & { correlationId: string };
  /** Default true: without a queue for it, it is returned. */
  mandatory?: boolean;
}

/** Publishes with confirm and, unless nobody has to get it, mandatory. */
export class ConfirmedPublisher {
  private readonly unconfirmed = new InFlight<(outcome: PublishOutcome) => void>();
  private unconfirmedBytes = 0;
  /** What the broker said when it closed the channel because of missing rights. */
  private refusal = '';

  constructor(private readonly channel: RabbitChannel<ConfirmChannel>) {
    channel.on('open', (opened) => {
      this.refusal = '';
      opened.on('return', (message) => this.onReturn(message));
      opened.on('error', (error: Error & { code?: number }) => {
        if (error.code === ACCESS_REFUSED) this.refusal = error.message;
      });
    });
  }

  /** @throws NotWritten at once when the broker cannot take it now, or the protocol cannot carry it */
  async publish({ exchange, routingKey, body, properties, mandatory = true }: Publication): Promise<PublishOutcome> {
    const { current } = this.channel;
    const problem = this.channel.check();
    if (problem || !current) throw new NotWritten(problem);
    if (this.unconfirmedBytes + body.length > MAX_UNCONFIRMED_BYTES) throw new NotWritten('the broker does not keep up');
    const { correlationId } = properties;

    return new Promise((resolve) => {
      const onConfirm = (error: Error | null) => {
        this.unconfirmed.take(correlationId);
        this.unconfirmedBytes -= body.length;
        const nacked = error?.message === 'message nacked';
        if (nacked) this.channel.connection.observer.nacked(exchange);
        resolve(!error ? 'confirmed' : nacked ? 'nacked' : this.isRefused(exchange, routingKey) ? 'forbidden' : 'lost');
      };
      try {
        writeMessage(current, { exchange, routingKey, mandatory }, properties, body, onConfirm);
      } catch (error) {
        throw new NotWritten((error as Error).message, { cause: error });
      }
      this.unconfirmedBytes += body.length;
      // The return of a message comes before its confirm, and resolving twice does nothing.
      this.unconfirmed.set(correlationId, resolve);
    });
  }

  /** Rights are those of the account: every message of this exchange, or with this routing key, on the channel was refused. */
  private isRefused(exchange: string, routingKey: string): boolean {
    return [`exchange '${exchange}'`, `topic '${routingKey}'`].some((what) => this.refusal.includes(`access to ${what}`));
  }

  private onReturn({ fields, properties }: Message): void {
    this.channel.connection.observer.returned(fields.exchange);
    this.unconfirmed.get(String(properties.correlationId))?.('returned');
  }
}
