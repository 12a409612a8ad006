/** What one client may take of the server before it is cut off, in milliseconds and bytes. */
export interface ServerLimits {
  /** From the first byte of a request, or the opening of its connection, to the end of its headers. */
  headersTimeoutMs: number;
  /** To the end of its body. */
  requestTimeoutMs: number;
  /** To that, when the server closes meanwhile: Node looks at nothing then. As long as an answer has to be taken. */
  lastArrivalMs: number;
  /** How often both are looked at, and what is not read. */
  checkEveryMs: number;
  /** How long an idle connection is kept: longer than load balancers keep theirs (60 s), so that they are the ones to close. */
  keepAliveTimeoutMs: number;
  /** The request line included. Bounds the number of headers, too. */
  maxHeaderBytes: number;
  /** Open at a time; one more is closed before it is read. Far above the calls in flight: most connections of load balancers are idle. */
  maxConnections: number;
  /** How long a client may take nothing of what is sent to it. */
  unreadTimeoutMs: number;
  /** The least that it has to take after that time, on average: 1 MiB in 16 s, as it may take to send one. */
  leastBytesPerSecond: number;
  /** Responses that one connection may owe. It is not read while there are more requests. */
  maxOwed: number;
  /** Requests of all connections that have arrived in excess of that; the connection that brings one more is closed. */
  maxQueued: number;
  /** Bytes of large bodies that arrive or are being worked on. */
  maxBytesArriving: number;
  /** Bytes of answers that are expected or wait for their clients. */
  maxBytesWaiting: number;
}

const MEBIBYTE = 1024 * 1024;

export const SERVER_LIMITS: ServerLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 15_000,
  lastArrivalMs: 10_000,
  checkEveryMs: 1000,
  keepAliveTimeoutMs: 65_000,
  maxHeaderBytes: 16 * 1024,
  maxConnections: 10_000,
  unreadTimeoutMs: 30_000,
  leastBytesPerSecond: 64 * 1024,
  maxOwed: 8,
  maxQueued: 10_000,
  maxBytesArriving: 128 * MEBIBYTE,
  maxBytesWaiting: 128 * MEBIBYTE,
};
