import { SpanKind } from '@opentelemetry/api';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { readTrace } from '@app/tracing/trace-context';
import { endFailed, isTracing, startEntrySpan } from '@app/tracing/tracing';
import type { Connections } from './connections';

/** Starts the span of a call, by OpenTelemetry's conventions for HTTP servers. It has the route, and neither path nor headers nor address. */
export function traceRequest(request: FastifyRequest, reply: FastifyReply, connections: Connections): void {
  const { url: route, config } = request.routeOptions;
  if (!isTracing() || config.public) return;
  const { method } = request;
  const caller = readTrace(request.headers.traceparent, request.headers.tracestate);
  const span = startEntrySpan(request.is404 || route === undefined ? method : `${method} ${route}`, SpanKind.SERVER, caller);
  request.span = span;
  if (!span?.isRecording()) return;
  span.setAttributes({
    'http.request.method': method,
    'url.scheme': 'http',
    'network.protocol.version': request.raw.httpVersion,
    ...(route !== undefined && !request.is404 && { 'http.route': route, 'url.path': route }),
  });
  connections.onClosed(reply.raw, () => {
    const { statusCode, writableFinished } = reply.raw;
    if (!writableFinished) return endFailed(span, 'client_left');
    span.setAttribute('http.response.status_code', statusCode);
    if (statusCode >= 500) endFailed(span, String(statusCode));
    else span.end();
  });
}
