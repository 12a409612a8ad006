import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Refusals } from './refusals';
import { requestIdOf } from './request-id';

/**
 * With all calls in flight that there may be, any other one is refused unread, before credentials and before Fastify: looking at those that
 * would be refused anyway would take the time that calls in flight need.
 *
 * @param server every listener of its requests so far stands behind this
 * @param isFull whether any call would be refused
 */
export function refuseUnread(server: Server, isFull: () => boolean, refusals: Refusals): void {
  const listeners = server.listeners('request') as ((request: IncomingMessage, response: ServerResponse) => void)[];
  server.removeAllListeners('request');
  server.on('request', (request, response) => {
    if (isFull() && request.url?.startsWith('/v1/')) refusals.refuse(response, requestIdOf(request), 'in_flight');
    else for (const listener of listeners) listener.call(server, request, response);
  });
}
