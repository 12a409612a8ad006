import type { Request } from '../messages/message-properties';

/** A query that waits for its answer. */
export interface Query extends Request {
  /** Copies that may still be answered. */
  copies: number;
  /** The copy for the first exchange; none, too, when no queue took it. */
  first: 'none' | 'sent' | 'confirmed';
  /** The latest copy for the standby exchange. */
  standby: 'none' | 'sent' | 'confirmed';
  standbyCopies: number;
  /** How often it was looked at because no answer came. */
  looks: number;
  /** Copies that were published because no answer came. */
  repetitions: number;
  timer?: NodeJS.Timeout;
  /** Channels that have ended with copies of it. */
  lostChannels: number;
  /** In milliseconds of `performance.now()`. */
  askedAt: number;
}

/** A query of which no copy was published on the current channel. */
export const UNSENT = { copies: 0, first: 'none', standby: 'none', standbyCopies: 0 } as const;
