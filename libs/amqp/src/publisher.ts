import type { ConfirmChannel, Message } from 'amqplib';
import { parseBrokerUrl } from '@app/runtime/broker-url';
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

/**
 * Longest time without any confirm while there is something to confirm. As long as for a silent node: with Khepri a node in a minority stays
 * connected, sends heartbeats and confirms nothing.
 */
const UNCONFIRMED_MS = 8000;

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
  /** Time of the last confirm, or of the first publication after everything was confirmed. */
  private silentSince = 0;
  private readonly hasOtherNodes: boolean;
  private watching?: NodeJS.Timeout;
  /** The broker's message when it closed the channel because of a missing permission. */
  private refusal = '';

  constructor(private readonly channel: RabbitChannel<ConfirmChannel>) {
    this.hasOtherNodes = parseBrokerUrl(channel.connection.options.url).addresses.length > 1;
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
    if (this.unconfirmed.size === 0) this.silentSince = performance.now();
    if (this.hasOtherNodes) this.watchConfirms();

    return new Promise((resolve) => {
      const onConfirm = (error: Error | null) => {
        this.unconfirmed.take(correlationId);
        this.silentSince = performance.now();
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

  private watchConfirms(afterMs = UNCONFIRMED_MS): void {
    this.watching ??= setTimeout(() => this.leaveSilentNode(), afterMs).unref();
  }

  private leaveSilentNode(): void {
    this.watching = undefined;
    if (this.unconfirmed.size === 0) return;
    const restMs = this.silentSince + UNCONFIRMED_MS - performance.now();
    if (restMs > 0) return this.watchConfirms(restMs);
    const { connection } = this.channel;
    // A node that is short of memory or disk says so, and the others are, too.
    if (connection.state === 'up' && connection.current)
      connection.giveUp(connection.current, `nothing was confirmed for ${UNCONFIRMED_MS / 1000} s`);
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
