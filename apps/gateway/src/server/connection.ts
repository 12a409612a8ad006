import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Progress } from './progress';

/** A response that a connection owes. */
export interface Owed {
  response: ServerResponse;
  callbacks: (() => void)[];
  /** Memory of the request. */
  bytes: number;
  /** Starts handling the request; absent when that has started. */
  begin?: () => void;
}

/** State of an open connection. */
export interface Connection {
  /** Responses in the order of their requests. */
  owed: Owed[];
  /** Requests that have arrived and are not started. While there are any, the connection is not read. */
  queued: number;
  /** Whether an answer says that it ends. */
  isEnding: boolean;
  /** Memory of the requests that are arriving, or of which the responses are owed. */
  bytes: number;
  /** Until it has arrived and is answered: the headers of ten thousand idle connections would fill the memory. */
  latest?: IncomingMessage;
  progress: Progress;
}
