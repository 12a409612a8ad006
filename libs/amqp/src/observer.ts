import type { RepetitionReason } from './queries';

/** Gets the events of a connection, to log and to count them. */
export interface Observer {
  /** Fields never contain a payload, a tenant or a connection string. */
  log: (level: 'info' | 'warn' | 'error', fields: { msg: string; [field: string]: unknown }) => void;
  /** The connection is opened again, after a failed attempt or a loss. */
  reconnecting(connection: string): void;
  /** Whether the broker is short of memory or disk and takes no messages. */
  blocked(connection: string, blocked: boolean): void;
  /** A message was returned: no queue is bound to its routing key. */
  returned(exchange: string): void;
  /** A message was nacked, for example because a queue is full. */
  nacked(exchange: string): void;
  /** A query was published again. */
  repeated(pattern: string, reason: RepetitionReason): void;
  /** The number of calls that wait for their reply has changed. */
  pending(connection: string, calls: number): void;
  /** A reply arrived without a pending call: mostly a late one. */
  unknownReply(): void;
}

/** Logs and counts nothing. */
export const silent: Observer = {
  log: () => undefined,
  reconnecting: () => undefined,
  blocked: () => undefined,
  returned: () => undefined,
  nacked: () => undefined,
  repeated: () => undefined,
  pending: () => undefined,
  unknownReply: () => undefined,
};
