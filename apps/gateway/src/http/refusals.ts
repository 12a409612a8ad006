import type { ServerResponse } from 'node:http';
import type { NestLogger } from '@app/runtime/logger';
import type { Readiness } from '@app/runtime/readiness';
import { errorEnvelope, JSON_TYPE } from './envelope';
import { rateLimited } from './metrics';

/** The limits that a call can meet: the rate of its key, the calls in flight, the large bodies on their way. */
export type Limit = 'rate' | 'in_flight' | 'arriving';

const LOG_EVERY_MS = 1000;
/** Log lines in that time, and request ids in one of them, at most. */
const MAX_LINES = 100;
const MAX_REQUEST_IDS = 20;

/** ASCII, and a string: Node writes it in one piece with the headers. */
const bodyOf = (message: string) => errorEnvelope({ status: 'RESOURCE_EXHAUSTED', message });
const TOO_MANY = bodyOf('Too many calls at the moment.');
const BODY: Record<Limit, string> = {
  rate: bodyOf('Too many calls of this API key.'),
  in_flight: TOO_MANY,
  arriving: TOO_MANY,
};

interface Untold {
  limit: Limit;
  apiKey?: string;
  calls: number;
  requestIds: string[];
}

/**
 * Answers 429 and does nothing else with a request: whoever sends too much must not take the time of the others by being refused. So without
 * an exception, Fastify's reply and a log line for each: a line a second says how many there were of a key, and names the first ones.
 */
export class Refusals {
  private readonly untold = new Map<string, Untold>();

  constructor(
    private readonly logger: NestLogger,
    private readonly readiness: Readiness,
  ) {}

  /**
   * Answered when the event loop has been to everybody else: while 1024 sockets are ready libuv looks for more, up to 48 times on end, and
   * neither publishes nor minds timers in between. Callers that are refused at once are ready again at once.
   *
   * @param waitMs until the call may be repeated
   */
  refuse(response: ServerResponse, requestId: string, limit: Limit, { waitMs = 1000, apiKey = '' } = {}): void {
    rateLimited.inc({ limit });
    this.count(requestId, limit, apiKey);
    setImmediate(() => this.answer(response, requestId, limit, waitMs));
  }

  private answer(response: ServerResponse, requestId: string, limit: Limit, waitMs: number): void {
    response.writeHead(429, {
      'content-type': JSON_TYPE,
      'content-length': BODY[limit].length,
      'retry-after': String(Math.max(1, Math.ceil(waitMs / 1000))),
      'x-request-id': requestId,
      ...(this.readiness.draining && { connection: 'close' }),
    });
    response.end(BODY[limit]);
  }

  private count(requestId: string, limit: Limit, apiKey: string): void {
    const name = `${limit} ${apiKey}`;
    let entry = this.untold.get(name);
    if (!entry) {
      if (this.untold.size === 0) setTimeout(() => this.tell(), LOG_EVERY_MS).unref();
      if (this.untold.size >= MAX_LINES) return;
      this.untold.set(name, (entry = { limit, ...(apiKey && { apiKey }), calls: 0, requestIds: [] }));
    }
    entry.calls++;
    if (entry.requestIds.length < MAX_REQUEST_IDS) entry.requestIds.push(requestId);
  }

  private tell(): void {
    for (const entry of this.untold.values()) this.logger.warn({ msg: 'calls were refused', ...entry });
    this.untold.clear();
  }
}
