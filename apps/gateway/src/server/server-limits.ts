const MEBIBYTE = 1024 * 1024;

/** Limits on clients of the server, in milliseconds and bytes. */
export const SERVER_LIMITS = {
  /** Time from the first byte of a request, or the opening of its connection, to the end of its headers. */
  headersTimeoutMs: 10_000,
  /** Time from the same start to the end of its body. */
  requestTimeoutMs: 15_000,
  /** Time that an idle connection stays open once the server closes. Its next answer ends it, and a proxy learns that nothing listens any more. */
  lastCallMs: 500,
  /** Time that a request may still arrive, and a client may read its answer, once the server closes: Node checks no timeouts then. */
  lastArrivalMs: 10_000,
  /** Interval of the checks of these timeouts and of unread answers. */
  checkEveryMs: 1000,
  /** Size of the headers with the request line. Limits the number of headers too. */
  maxHeaderBytes: 16 * 1024,
  /**
   * Open connections; a further one takes the place of an idle one, or is closed unread. Far above the calls in flight, because most connections of load
   * balancers are idle.
   */
  maxConnections: 10_000,
  /**
   * While at most so many open connections have no proved key, it is one with a proved key that gives its place: new ones that come together would
   * close one another before their first requests.
   */
  fewUnproved: 256,
  /**
   * Connections that the kernel holds for each listening socket until the process accepts them. A client beyond them waits a second, then two. Node's
   * default is 511, and the kernel's `net.core.somaxconn` is an upper bound.
   */
  backlog: 4096,
  /** Time during which a client may read nothing of its answers. */
  unreadTimeoutMs: 30_000,
  /** Minimum average rate of reading after that time: 1 MiB in 16 s, about the time allowed for sending a body. */
  leastBytesPerSecond: 64 * 1024,
  /** Responses that one connection may owe. With more requests it is not read. */
  maxOwed: 8,
  /** Requests above maxOwed, of all connections together. With one more the connection with the most of them is closed. */
  maxQueued: 10_000,
  /**
   * Memory of all requests that are arriving, or whose answers are owed, with their headers and without their bodies. Beyond it the connections with
   * most of it are closed.
   */
  maxOwedBytes: 64 * MEBIBYTE,
  /** The same of requests that are read in one iteration of the event loop. Then no connection is read until the next one. */
  maxReadBytes: 16 * MEBIBYTE,
  /** Bytes of large bodies of calls that are arriving or in flight. */
  maxBytesArriving: 128 * MEBIBYTE,
  /** The same of bodies above 2 KiB that are not large. */
  maxSmallBytesArriving: 32 * MEBIBYTE,
  /** Bytes of answers that are expected or not read by their clients yet. */
  maxBytesWaiting: 128 * MEBIBYTE,
};

export type ServerLimits = typeof SERVER_LIMITS;
