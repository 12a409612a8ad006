import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Refusals } from './refusals';
import { requestIdOf } from './request-id';

/** What arrives later in the same turn of the event loop may be refused unread. */
const LONGEST_TURN_MS = 25;

/**
 * With all calls in flight that there may be, a turn of the event loop that brings more than it can look at in time refuses the rest unread,
 * before credentials and before Fastify: looking would take the time that calls in flight need.
 */
export class Overload {
  private turnBeganAt?: number;

  /** @param isFull whether any call would be refused */
  constructor(
    private readonly isFull: () => boolean,
    private readonly refusals: Refusals,
  ) {}

  /** Stands before everything that listens to requests so far. */
  guard(server: Server): void {
    const listeners = server.listeners('request') as ((request: IncomingMessage, response: ServerResponse) => void)[];
    server.removeAllListeners('request');
    server.on('request', (request, response) => {
      if (this.isLate() && this.isFull() && request.url?.startsWith('/v1/')) {
        this.refusals.refuse(response, requestIdOf(request), 'overload');
      } else for (const listener of listeners) listener.call(server, request, response);
    });
  }

  private isLate(): boolean {
    const now = performance.now();
    if (this.turnBeganAt === undefined) {
      this.turnBeganAt = now;
      // Runs when everything that had arrived has been handed out.
      setImmediate(() => (this.turnBeganAt = undefined));
    }
    return now - this.turnBeganAt > LONGEST_TURN_MS;
  }
}
