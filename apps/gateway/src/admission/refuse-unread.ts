import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Limit, TooManyRequests } from './too-many-requests';
import { isHealth, kindOf } from './kinds';
import { ambiguityOf } from './oddities';
import type { Connections } from '../server/connections';
import { networkOf } from '../server/network-of';
import { requestIdOf } from '../server/request-id';
import { standBefore } from '../server/stand-before';
import { strangersWaiting, strangersWaitingLimit } from '../server/metrics';
import { Pace } from '../server/pace';
import { Shares } from './shares';

/**
 * Most calls of unknown callers that begin in one iteration of the event loop. Such a call may take a millisecond: a question about credentials.
 * A call in flight needs some four iterations.
 */
const MOST_STRANGERS = 4;
/** The same for other requests. A file of the documentation may have a megabyte, which is written at once. */
const MOST_VISITORS = 1;
/** The same for health checks. None is refused: a load balancer would take this process for a broken one. */
const MOST_CHECKS = 4;
/** Most of them that wait. A further one is refused, which is cheaper than to handle it. */
export const MOST_STRANGERS_WAITING = 2000;

/** Refusal of a request after its request line and headers. The key is set only when the caller has proved it. */
export interface UnreadRefusal {
  limit: Limit;
  apiKey?: string;
}

/** Decisions about a request before its body is read. */
export interface UnreadChecks {
  refusalUnread(request: IncomingMessage): UnreadRefusal | undefined;
  /** Whether the request begins at once, however many others wait. It is not asked about a health check. */
  isKnown(request: IncomingMessage): boolean;
}

/**
 * Refuses requests before Fastify handles them, because Fastify would take time that the calls in flight need. Lets only a few requests of unknown
 * callers begin in each iteration of the event loop. Addresses take turns, and have shares of the room for those that wait.
 *
 * @param server its current request listeners run after this one
 */
export function refuseUnread(
  server: Server,
  checks: UnreadChecks,
  tooMany: TooManyRequests,
  connections: Pick<Connections, 'onClosed' | 'owedBy'>,
): void {
  const strangers = new Pace(MOST_STRANGERS);
  const visitors = new Pace(MOST_VISITORS);
  const health = new Pace(MOST_CHECKS);
  const waiting = new Shares(MOST_STRANGERS_WAITING, (held) => strangersWaiting.set(held));
  strangersWaitingLimit.set(MOST_STRANGERS_WAITING);
  standBefore(server, (request, response, next) => {
    // The answer to that one ends the connection.
    if (isBehindAmbiguous(response, connections.owedBy(request.socket))) return;
    const { limit, apiKey } = checks.refusalUnread(request) ?? {};
    if (limit) return tooMany.refuse(response, requestIdOf(request), limit, { apiKey });
    const pace = kindOf(request.url) ? strangers : isHealth(request) ? health : visitors;
    if (pace.isFree) return pace.begin(next);
    const network = networkOf(request.socket);
    let isCounted = pace !== health;
    if (isCounted) {
      if (checks.isKnown(request)) return next();
      if (waiting.take(network, 1)) return tooMany.refuse(response, requestIdOf(request), 'strangers');
    }
    const giveRoom = () => {
      if (isCounted) waiting.give(network, 1);
      isCounted = false;
    };
    const leave = pace.later(() => {
      giveRoom();
      // The client may have left meanwhile.
      if (!request.socket.destroyed) next();
    }, network);
    connections.onClosed(response, () => {
      leave();
      giveRoom();
    });
  });
}

/** Another program could take the bytes of a request behind an ambiguous one for a part of that one. */
const isBehindAmbiguous = (response: ServerResponse, owed: ServerResponse[]): boolean =>
  owed.length > 1 && owed.slice(0, owed.indexOf(response)).some(({ req }) => ambiguityOf(req));
