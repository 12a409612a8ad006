import type { Request } from '../messages/message-properties';

/** Why a query was asked again: its queue is away, it was not confirmed, it had no answer, or the connection was lost. */
export type RepetitionReason = 'away' | 'unconfirmed' | 'unanswered' | 'lost';

/** Gets the events of a connection, to log and to count them. */
export interface Observer {
  /** Fields never contain a payload, a tenant or a connection string. */
  log: (level: 'info' | 'warn' | 'error', fields: { msg: string; [field: string]: unknown }) => void;
  /** The connection is opened again, after a failed attempt or a loss. */
  reconnecting(connection: string): void;
  /**
   * The connection to one address of the broker's URL, `host:port`, has been opened (`up`) or has ended.
   *
   * @param preferred the address at which the connection wants to be
   */
  connected(connection: string, address: string, up: boolean, preferred: string): void;
  /** Whether the broker is short of memory or disk and takes no messages. */
  blocked(connection: string, blocked: boolean): void;
  /** A message was returned: no queue is bound to its routing key. */
  returned(exchange: string): void;
  /** A message was nacked, for example because a queue is full. */
  nacked(exchange: string): void;
  /** A query was published again. */
  repeated(pattern: string, reason: RepetitionReason): void;
  /** Commands with a caller that waits were published in one message. @param outcome `confirmed` or why not; rejects when nothing was written */
  sent(exchange: string, commands: readonly Request[], outcome: Promise<string>): void;
  /** The number of calls that wait for their reply has changed. */
  pending(connection: string, calls: number): void;
  /** A reply arrived without a pending call: mostly a late one. */
  unknownReply(): void;
}

/** Logs and counts nothing. */
export const silent: Observer = {
  log: () => undefined,
  reconnecting: () => undefined,
  connected: () => undefined,
  blocked: () => undefined,
  returned: () => undefined,
  nacked: () => undefined,
  repeated: () => undefined,
  sent: () => undefined,
  pending: () => undefined,
  unknownReply: () => undefined,
};
