import type { IncomingMessage, Server } from 'node:http';
import type { Limit, TooManyRequests } from './too-many-requests';
import { requestIdOf } from '../server/request-id';
import { standBefore } from '../server/stand-before';

/** A refusal of a request of which only the line and the headers were looked at. The key is known to be the caller's. */
export interface UnreadRefusal {
  limit: Limit;
  apiKey?: string;
}

/**
 * Refuses what would be refused anyway before Fastify sees it: that would take the time that calls in flight need.
 *
 * @param server every listener of its requests so far stands behind this
 * @param refusalOf looks at a request
 */
export function refuseUnread(
  server: Server,
  refusalOf: (request: IncomingMessage) => UnreadRefusal | undefined,
  tooMany: TooManyRequests,
): void {
  standBefore(server, (request, response, next) => {
    const refusal = refusalOf(request);
    if (!refusal) return next();
    const { limit, apiKey } = refusal;
    tooMany.refuse(response, requestIdOf(request), limit, { apiKey });
  });
}
