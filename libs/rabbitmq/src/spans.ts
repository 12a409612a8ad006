import { SpanKind, type Span, type SpanContext } from '@opentelemetry/api';
import type { ConsumeMessage } from 'amqplib';
import { HEADER } from '@app/amqp/messages/headers';
import type { Request } from '@app/amqp/messages/message-properties';
import type { ErrorStatus } from '@app/contracts/error';
import { isSampled, readTrace } from '@app/tracing/trace-context';
import { endFailed, isTracing, startEntrySpan, startInnerSpan, startSpan } from '@app/tracing/tracing';
import type { DeliveryContext } from './delivery/delivery-context';
import { STANDBY_EXCHANGE, type ExchangeName } from './topology/topology';

/** Spans of messages, by OpenTelemetry's conventions for messaging and RabbitMQ. No attribute has a payload, a tenant or a user. */

/** Exchanges to which nobody but the processes of this system publishes. */
const OWN: ReadonlySet<string> = new Set<ExchangeName>(['calls', STANDBY_EXCHANGE, 'retry', 'events.own']);

/** Errors that are not the mistake of the caller. */
const FAILURES: ReadonlySet<string> = new Set<ErrorStatus>([
  'INTERNAL',
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'RESOURCE_EXHAUSTED',
]);

const attributesOf = (operation: string, type: 'send' | 'process', exchange: string, pattern: string, queue = '') => ({
  'messaging.system': 'rabbitmq',
  'messaging.operation.name': operation,
  'messaging.operation.type': type,
  'messaging.destination.name': `${exchange && `${exchange}:`}${pattern}${queue && `:${queue}`}`,
  'messaging.rabbitmq.destination.routing_key': pattern,
});

/** A command or query, from its publication to its reply. */
export function startCall(exchange: string, pattern: string, parent: SpanContext | undefined): Span | undefined {
  const span = startSpan(`call ${exchange}:${pattern}`, SpanKind.PRODUCER, parent);
  if (span?.isRecording()) span.setAttributes(attributesOf('call', 'send', exchange, pattern));
  return span;
}

/**
 * The publication of several commands in one message, until the broker has it. It is in the trace of the first sampled command, and has a link to
 * the span of each.
 *
 * @param outcome `confirmed` or why not; rejects when nothing was written
 */
export function tracePublication(exchange: string, commands: readonly Request[], outcome: Promise<string>): void {
  if (!isTracing() || commands.length === 1) return;
  const members = commands
    .flatMap(({ options: { trace } }) => readTrace(trace?.traceparent, trace?.tracestate) ?? [])
    .filter(isSampled);
  const { pattern } = commands[0].operation;
  const span = members[0] && startSpan(`publish ${exchange}:${pattern}`, SpanKind.CLIENT, members[0], members);
  if (!span) return;
  span.setAttributes(attributesOf('publish', 'send', exchange, pattern));
  span.setAttribute('messaging.batch.message_count', commands.length);
  outcome.then(
    (one) => (one === 'confirmed' ? span.end() : endFailed(span, one)),
    () => endFailed(span, 'not_written'),
  );
}

/** An event, until the broker has it. */
export function startEvent(exchange: string, type: string, id: string, parent: SpanContext | undefined): Span | undefined {
  if (!parent) return undefined;
  const span = startSpan(`publish ${exchange}:${type}`, SpanKind.PRODUCER, parent);
  if (span?.isRecording())
    span.setAttributes(attributesOf('publish', 'send', exchange, type)).setAttribute('messaging.message.id', id);
  return span;
}

/**
 * The work on a delivery, from its arrival to its ack. A retry is the child of the attempt before.
 *
 * @param pattern `unknown` for a routing key without a handler, because the number of those is unlimited
 */
export function startProcess({ fields, properties }: ConsumeMessage, pattern: string, queue: string): Span | undefined {
  if (!isTracing()) return undefined;
  const { [HEADER.traceparent]: traceparent, [HEADER.tracestate]: tracestate }: Record<string, unknown> =
    properties.headers ?? {};
  const caller = readTrace(traceparent, tracestate);
  const start = OWN.has(fields.exchange) ? startInnerSpan : startEntrySpan;
  const span = start(`process ${queue}`, SpanKind.CONSUMER, caller);
  if (span?.isRecording()) span.setAttributes(attributesOf('process', 'process', fields.exchange, pattern, queue));
  return span;
}

/** @param status of the error, or empty */
export function endProcess({ span, messageId, attempt }: DeliveryContext, outcome: string, status: string): void {
  if (!span?.isRecording()) return;
  if (messageId !== undefined) span.setAttribute('messaging.message.id', messageId);
  span.setAttribute('collaboration.attempt', attempt).setAttribute('collaboration.outcome', outcome);
  if (FAILURES.has(status)) return endFailed(span, status);
  if (status && status !== 'OK') span.setAttribute('error.type', status);
  span.end();
}
