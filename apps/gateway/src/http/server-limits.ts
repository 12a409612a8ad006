/** What one client may take of the server before it is cut off, in milliseconds and bytes. */
export interface ServerLimits {
  /** From the first byte of a request, or the opening of its connection, to the end of its headers. */
  headersTimeoutMs: number;
  /** To the end of its body. */
  requestTimeoutMs: number;
  /** To that, when the server closes meanwhile: Node looks at nothing then. */
  lastArrivalMs: number;
  /** How often both are looked at. */
  checkEveryMs: number;
  /** How long an idle connection is kept: longer than load balancers keep theirs (60 s), so that they are the ones to close. */
  keepAliveTimeoutMs: number;
  /** The request line included. Bounds the number of headers, too. */
  maxHeaderBytes: number;
  /** Open at a time; one more is closed before it is read. Far above the calls in flight: most connections of load balancers are idle. */
  maxConnections: number;
}

export const SERVER_LIMITS: ServerLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 15_000,
  lastArrivalMs: 10_000,
  checkEveryMs: 1000,
  keepAliveTimeoutMs: 65_000,
  maxHeaderBytes: 16 * 1024,
  maxConnections: 10_000,
};
