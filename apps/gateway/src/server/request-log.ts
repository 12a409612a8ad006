import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '@app/contracts/error';
import type { NestLogger } from '@app/runtime/logger';
import { traceFields } from '@app/tracing/tracing';
import type { Connections } from './connections';
import { requestSeconds } from './metrics';
import type { StrangerLines } from './stranger-lines';

/** Logged when the client left before its answer. It is never sent. */
const CLIENT_LEFT = 499;

/**
 * Writes one log line and one measurement for each request, when its response has closed. Of the client's data the line contains only the request
 * id and the proved API key: paths, queries and bodies may hold secrets.
 *
 * @param strangers gets the lines of callers without a proved API key
 */
export function logRequests(
  request: FastifyRequest,
  reply: FastifyReply,
  connections: Connections,
  logger: NestLogger,
  strangers: StrangerLines,
): void {
  const startedAt = performance.now();
  connections.onClosed(reply.raw, () => {
    const milliseconds = performance.now() - startedAt;
    const status = reply.raw.writableFinished ? reply.raw.statusCode : CLIENT_LEFT;
    const route = request.routeOptions.url ?? 'unknown';
    requestSeconds.observe({ route, status }, milliseconds / 1000);
    if (request.refused) return;
    const apiKey = request.raw.provedKey;
    const line = {
      msg: 'request',
      method: request.method,
      route,
      status,
      ...(request.errorStatus && { error: request.errorStatus }),
      durationMs: Math.round(milliseconds * 10) / 10,
      requestId: request.id,
      ...traceFields(request.span),
      ...(apiKey !== undefined && { apiKey }),
    };
    // Probes come every few seconds with the same result.
    if (route.startsWith('/health/')) logger.debug(line);
    else {
      const whole = status >= 500 ? { ...line, ...reasonOf(request.failure) } : line;
      if (apiKey === undefined) strangers.write(status, whole);
      else if (status >= 500) logger.warn(whole);
      else logger.log(whole);
    }
  });
}

/** The reason of a failure; the stack only for unexpected errors. */
function reasonOf(failure: unknown): object {
  if (!(failure instanceof ApiError)) return { err: failure };
  const { message, cause } = failure;
  return { reason: message, ...(cause instanceof Error && { cause: cause.message }) };
}
