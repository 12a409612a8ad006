import type { ConfirmChannel, Message } from 'amqplib';
import type { RabbitChannel } from './channel';
import { InFlight } from './in-flight';
import { writeMessage, type Properties } from './write-message';

/** Most bytes written and not confirmed: a broker that stops reading must not fill the memory of this process. */
const MAX_UNCONFIRMED_BYTES = 64 * 1024 * 1024;

/**
 * `confirmed`: the broker has it. `returned` and `nacked`: no queue has it, and none will. `lost`: the channel ended first, so the broker
 * may have it. `forbidden`: the account may not publish it, and the channel ended.
 */
export type PublishOutcome = 'confirmed' | 'returned' | 'nacked' | 'forbidden' | 'lost';

const ACCESS_REFUSED = 403;

/** The message was not written to the connection. */
export class NotWritten extends Error {}

export interface Publication {
  exchange: string;
  routingKey: string;
  body: Buffer;
  /** `correlationId` must be unique among the messages in flight: it identifies a returned message. */
  properties: Properties & { correlationId: string };
  /** Whether the broker returns a message that no queue is bound for. Default true. */
  mandatory?: boolean;
}

/** Publishes messages and waits for the broker's confirms. */
export class ConfirmedPublisher {
  private readonly unconfirmed = new InFlight<(outcome: PublishOutcome) => void>();
  private unconfirmedBytes = 0;
  /** The broker's message when it closed the channel because of a missing permission. */
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

  /** @throws NotWritten at once when the broker cannot take the message now, or AMQP cannot encode it (then with a `cause`) */
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
      // The broker sends a return before the confirm. Resolving twice has no effect.
      this.unconfirmed.set(correlationId, resolve);
    });
  }

  /** Permissions belong to the account: all unconfirmed messages with this exchange or this routing key were refused. */
  private isRefused(exchange: string, routingKey: string): boolean {
    return [`exchange '${exchange}'`, `topic '${routingKey}'`].some((what) => this.refusal.includes(`access to ${what}`));
  }

  private onReturn({ fields, properties }: Message): void {
    this.channel.connection.observer.returned(fields.exchange);
    this.unconfirmed.get(String(properties.correlationId))?.('returned');
  }
}
