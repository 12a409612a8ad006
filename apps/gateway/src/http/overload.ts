import type { FastifyReply, FastifyRequest } from 'fastify';
import type { NestLogger } from '@app/runtime/logger';
import { errorEnvelope, JSON_TYPE } from './envelope';
import { rateLimited } from './metrics';

/** What arrives later in the same turn of the event loop may be refused unread. */
const LONGEST_TURN_MS = 25;
const LOG_EVERY_MS = 1000;

const REFUSED = Buffer.from(errorEnvelope({ status: 'RESOURCE_EXHAUSTED', message: 'Too many calls at the moment.' }));

/**
 * Makes refusals cheap when there are many: with all calls in flight that there may be, a turn of the event loop that brings more than it can
 * look at in time refuses the rest unread, before credentials. Refusing would take the time that calls in flight need otherwise. One log line
 * a second tells how many: a line for each would make it worse.
 */
export class Overload {
  private turnBeganAt?: number;
  private untold = 0;

  /** @param isFull whether any call would be refused */
  constructor(
    private readonly isFull: () => boolean,
    private readonly logger: NestLogger,
  ) {}

  /** As the first Fastify onRequest hook. */
  shed = (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    if (!this.isLate() || !this.isFull() || request.routeOptions.config.public) return done();
    rateLimited.inc({ limit: 'overload' });
    if (this.untold++ === 0) setTimeout(() => this.tell(), LOG_EVERY_MS).unref();
    reply.hijack();
    reply.raw.writeHead(429, {
      'content-type': JSON_TYPE,
      'content-length': REFUSED.length,
      'retry-after': '1',
      'x-request-id': request.id,
    });
    reply.raw.end(REFUSED);
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

  private tell(): void {
    this.logger.warn({ msg: 'overloaded: calls were refused unread', calls: this.untold });
    this.untold = 0;
  }
}
