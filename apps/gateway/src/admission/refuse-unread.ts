import type { IncomingMessage, Server } from 'node:http';
import type { Limit, TooManyRequests } from './too-many-requests';
import { requestIdOf } from '../server/request-id';
import { standBefore } from '../server/stand-before';

/** Refusal of a request after its request line and headers. The key is set only when the caller has proved it. */
export interface UnreadRefusal {
  limit: Limit;
  apiKey?: string;
}

/**
 * Refuses requests before Fastify handles them, because Fastify would take time that the calls in flight need.
 *
 * @param server its current request listeners run after this one
 * @param refusalOf decides about a request
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
