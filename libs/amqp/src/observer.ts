/** Told what happens on a connection, to log it and to count it. */
export interface Observer {
  /** Never called with a payload, a tenant or a connection string. */
  log: (level: 'info' | 'warn' | 'error', fields: { msg: string; [field: string]: unknown }) => void;
  /** It connects again, after a failed attempt or a lost connection. */
  reconnecting(connection: string): void;
  /** Whether the broker is short of memory or disk and takes no messages. */
  blocked(connection: string, blocked: boolean): void;
  /** A message was returned: no queue is bound to its routing key. */
  returned(exchange: string): void;
  /** A message was refused, as a full queue does. */
  nacked(exchange: string): void;
  /** So many calls wait for their reply. */
  pending(connection: string, calls: number): void;
  /** A reply came that no call waits for: a late one, mostly. */
  unknownReply(): void;
}

/** Says and counts nothing. */
export const silent: Observer = {
  log: () => undefined,
  reconnecting: () => undefined,
  blocked: () => undefined,
  returned: () => undefined,
  nacked: () => undefined,
  pending: () => undefined,
  unknownReply: () => undefined,
};
