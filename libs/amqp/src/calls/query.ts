import type { RepetitionReason } from '../connection/observer';
import type { Request } from '../messages/message-properties';
import type { PublishOutcome } from '../publishing/publisher';

/** A query that waits for its answer. */
export interface Query extends Request {
  /** Copies that may still be answered. */
  copies: number;
  /** The copy for the first exchange; none, too, when no queue took it. */
  first: 'none' | 'sent' | 'confirmed';
  /** The latest copy for the standby exchange; failed when no queue took it. */
  standby: 'none' | 'sent' | 'confirmed' | 'failed';
  /** Numbers these copies, also beyond a lost channel: no two messages of one channel may have the same correlation id. */
  standbyCopies: number;
  /** Copies up to this number say nothing about later ones: their channel has ended, or no queue took the last of them. */
  voidStandbyCopies: number;
  /** How often it was looked at because no answer came over this channel. */
  looks: number;
  /** Copies that were published because no answer came. */
  repetitions: number;
  timer?: NodeJS.Timeout;
  /** Channels that have ended with copies of it. */
  lostChannels: number;
  /** When it was asked, or asked again on a new channel. In milliseconds of `performance.now()`. */
  askedAt: number;
}

/** A query of which no copy was published on the current channel. */
export const UNSENT = { copies: 0, first: 'none', standby: 'none', looks: 0 } as const;

/** A query that was never published. */
export const NEW = { ...UNSENT, standbyCopies: 0, voidStandbyCopies: 0, repetitions: 0, lostChannels: 0 } as const;

export interface QueryTransport {
  /** Publishes one copy. @throws NotWritten */
  publish(exchange: string, query: Request, correlationId: string, timeoutMs: number): Promise<PublishOutcome>;
  reject(correlationId: string, error: Error): void;
  repeated(pattern: string, reason: RepetitionReason): void;
  /** Whether calls wait for the end of an alarm of the broker. */
  isWaiting(): boolean;
}
