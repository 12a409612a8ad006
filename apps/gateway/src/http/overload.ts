import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Refusals } from './refusals';

/** What arrives later in the same turn of the event loop may be refused unread. */
const LONGEST_TURN_MS = 25;

/**
 * With all calls in flight that there may be, a turn of the event loop that brings more than it can look at in time refuses the rest unread,
 * before credentials: looking would take the time that calls in flight need.
 */
export class Overload {
  private turnBeganAt?: number;

  /** @param isFull whether any call would be refused */
  constructor(
    private readonly isFull: () => boolean,
    private readonly refusals: Refusals,
  ) {}

  /** As the first Fastify onRequest hook. */
  shed = (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    if (!this.isLate() || !this.isFull() || request.routeOptions.config.public) done();
    else this.refusals.refuse(request, reply, 'overload');
  };

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
