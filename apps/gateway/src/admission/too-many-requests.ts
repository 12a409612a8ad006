import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { NestLogger } from '@app/runtime/logger';
import type { Readiness } from '@app/runtime/readiness';
import { ApiError, HTTP_STATUS, type ErrorStatus } from '@app/contracts/error';
import { errorEnvelope, JSON_TYPE } from '../server/envelope';
import type { Connections } from '../server/connections';
import { countError, rateLimited } from '../server/metrics';
import { NOT_CHECKED } from './authenticator';
import { ambiguityOf } from './oddities';
import { Pace } from '../server/pace';

/**
 * Limits that a call can reach: the rate of its key; the calls in flight, the bytes of bodies and the bytes of answers, each in total or as
 * the share of its key; the new credentials that are being checked; the requests of unknown callers that wait for their turn,
 * or the answers to them that are not read.
 */
export type Limit =
  | 'rate'
  | 'in_flight'
  | 'in_flight_share'
  | 'arriving'
  | 'arriving_share'
  | 'waiting'
  | 'waiting_share'
  | 'credentials'
  | 'strangers';

const LOG_EVERY_MS = 1000;
/** Most log lines in that time, and most request ids in a line. */
const MAX_LINES = 100;
const MAX_REQUEST_IDS = 20;
/** Most refusals that are answered in one iteration of the event loop. A call in flight needs two iterations, so these have to be short. */
export const MOST_IN_ITERATION = 32;

/** An ASCII string, which Node writes together with the headers. */
const bodyOf = (message: string, status: ErrorStatus = 'RESOURCE_EXHAUSTED') => errorEnvelope({ status, message });
const TOO_MANY = bodyOf('Too many calls at the moment.');
const OF_THE_KEY = 'Too many calls of this API key at the moment: others have their share, too.';
const TOO_MANY_OF_THE_KEY = bodyOf(OF_THE_KEY);
const BODY: Record<Limit, string> = {
  rate: bodyOf('Too many calls of this API key.'),
  in_flight: TOO_MANY,
  in_flight_share: TOO_MANY_OF_THE_KEY,
  arriving: TOO_MANY,
  arriving_share: TOO_MANY_OF_THE_KEY,
  waiting: TOO_MANY,
  waiting_share: TOO_MANY_OF_THE_KEY,
  credentials: bodyOf(NOT_CHECKED, 'UNAVAILABLE'),
  strangers: TOO_MANY,
};
/** Any other limit answers 429. */
const STATUS: Partial<Record<Limit, number>> = { credentials: HTTP_STATUS.UNAVAILABLE };
const TOO_MANY_REQUESTS = 429;

// A rate misses the first event of a counter that appears with it.
for (const limit of Object.keys(BODY)) rateLimited.inc({ limit }, 0);

/** Hints for the operator, in the log. */
const HINT: Record<Limit, string> = {
  rate: 'The key is over RATE_LIMIT_PER_SECOND; other keys are not affected.',
  in_flight: 'A service or the database is slow, or another gateway process is needed.',
  in_flight_share: 'The key has its share of MAX_IN_FLIGHT, or of the turns at the services; other keys are not affected.',
  arriving: 'Many bodies arrive slowly: another gateway process is needed.',
  arriving_share: 'The key has its share of the bytes of bodies, or of the turns of large ones; other keys are not affected.',
  waiting: 'Many answers are not read: another gateway process is needed, or a proxy that reads them.',
  credentials: 'Many new credentials are being checked, most of them wrong. Known credentials are not affected.',
  strangers: 'Many requests without known credentials. Calls with known credentials are not affected.',
  waiting_share: 'The key reads its answers more slowly than it sends calls; other keys are not affected.',
};

interface Unlogged {
  limit: Limit;
  apiKey?: string;
  calls: number;
  requestIds: string[];
}

/**
 * Answers 429, or 503 to unchecked credentials, as cheaply as possible, because refusing one caller must not take time from others: without an
 * exception, without Fastify's reply, and without a log line for each request. One line a second for each key counts the refused calls and names the first ones.
 */
export class TooManyRequests {
  private readonly unlogged = new Map<string, Unlogged>();
  /** Refusals without an answer. Bounded by the memory of what all connections owe. */
  private readonly pace = new Pace(MOST_IN_ITERATION);

  constructor(
    private readonly logger: NestLogger,
    private readonly readiness: Readiness,
    private readonly connections: Pick<Connections, 'onClosed' | 'endsBehind'>,
  ) {}

  /**
   * Refuses a request after the event loop has served the other sockets, at most 32 requests in one iteration. While 1024 sockets are
   * ready, libuv polls again, up to 48 times in a row, without publishing and timers in between. A caller that is refused at once is ready
   * again at once.
   *
   * @param more.waitMs milliseconds after which the call may be repeated
   */
  refuse(response: ServerResponse, requestId: string, limit: Limit, more: { waitMs?: number; apiKey?: string } = {}): void {
    const { waitMs = 1000, apiKey = '' } = more;
    rateLimited.inc({ limit });
    countError('refused', limit === 'credentials' ? 'UNAVAILABLE' : 'RESOURCE_EXHAUSTED');
    this.count(requestId, limit, apiKey);
    const leave = this.pace.later(() => this.answer(response, requestId, limit, waitMs));
    this.connections.onClosed(response, leave);
  }

  /** Replaces the answer of a reply by 429. @returns the body */
  instead(reply: FastifyReply, limit: Limit, apiKey?: string): string {
    rateLimited.inc({ limit });
    countError(reply.request.routeOptions.url ?? 'unknown', 'RESOURCE_EXHAUSTED');
    reply.request.errorStatus = 'RESOURCE_EXHAUSTED';
    this.count(reply.request.id, limit, apiKey ?? '');
    // That of a file of the documentation lets caches keep it.
    void reply.removeHeader('cache-control').code(429).header('retry-after', '1').type(JSON_TYPE);
    return BODY[limit];
  }

  /** For a call whose body was read: counts it. @returns the error to answer with, by the share of a key */
  errorOf(requestId: string, limit: 'arriving_share', apiKey: string): ApiError {
    rateLimited.inc({ limit });
    this.count(requestId, limit, apiKey);
    return new ApiError('RESOURCE_EXHAUSTED', OF_THE_KEY);
  }

  private answer(response: ServerResponse, requestId: string, limit: Limit, waitMs: number): void {
    // Node makes an error for each write to a closed connection, and a flood of them is left when its connections are closed.
    if (response.req.socket.destroyed) return;
    const { draining } = this.readiness;
    response.writeHead(STATUS[limit] ?? TOO_MANY_REQUESTS, {
      'content-type': JSON_TYPE,
      'content-length': BODY[limit].length,
      'retry-after': String(Math.max(1, Math.ceil(waitMs / 1000))),
      'x-request-id': requestId,
      ...(draining && { connection: this.connections.endsBehind(response) ? 'close' : 'keep-alive' }),
      ...(ambiguityOf(response.req) && { connection: 'close' }),
    });
    response.end(BODY[limit]);
  }

  private count(requestId: string, limit: Limit, apiKey: string): void {
    const name = `${limit} ${apiKey}`;
    let entry = this.unlogged.get(name);
    if (!entry) {
      if (this.unlogged.size === 0) setTimeout(() => this.log(), LOG_EVERY_MS).unref();
      if (this.unlogged.size >= MAX_LINES) return;
      this.unlogged.set(name, (entry = { limit, ...(apiKey && { apiKey }), calls: 0, requestIds: [] }));
    }
    entry.calls++;
    if (entry.requestIds.length < MAX_REQUEST_IDS) entry.requestIds.push(requestId);
  }

  private log(): void {
    for (const entry of this.unlogged.values())
      this.logger.warn({ msg: 'calls were refused', ...entry, hint: HINT[entry.limit] });
    this.unlogged.clear();
  }
}
