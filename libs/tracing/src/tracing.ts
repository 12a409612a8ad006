import { AsyncLocalStorage } from 'node:async_hooks';
import {
  INVALID_SPAN_CONTEXT,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
  type Span,
  type SpanContext,
  type SpanKind,
  type Tracer,
} from '@opentelemetry/api';
import { newTraceId, useTraceId } from './ids';
import { isSampled, storedTrace, traceHeaders, type TraceHeaders } from './trace-context';

export interface Settings {
  tracer: Tracer;
  /** Whether the trace of a caller outside this system goes on here, with the caller's sampling decision. */
  followsCallers: boolean;
  /** Decides about a new trace as the sampler of the tracer does. */
  samples: (traceId: string) => boolean;
}

let settings: Settings | undefined;

/** @param now undefined: tracing is off */
export function useTracing(now: Settings | undefined): void {
  settings = now;
}

/** Whether spans are made at all. While they are not, nothing is read from headers and nothing is sent. */
export const isTracing = (): boolean => settings !== undefined;

/**
 * The span of every trace that begins here and is not sampled. It has no ids, so that such a call costs next to nothing: its messages carry no
 * context, and its log lines no ids.
 */
const UNSAMPLED = trace.wrapSpanContext(INVALID_SPAN_CONTEXT);

/**
 * Starts a span. Attributes are set only on a span that is recorded, because most calls of a busy system are not sampled. For these the SDK is not
 * asked: its answer would cost ten times as much.
 *
 * @returns undefined while tracing is off
 */
export function startSpan(
  name: string,
  kind: SpanKind,
  parent?: SpanContext,
  links?: readonly (SpanContext | undefined)[],
): Span | undefined {
  if (!settings) return undefined;
  const { tracer, followsCallers, samples } = settings;
  const linked = links?.flatMap((one) => (one ? [{ context: one }] : []));
  if (parent) {
    if (parent === INVALID_SPAN_CONTEXT) return UNSAMPLED;
    if (followsCallers && !isSampled(parent)) return trace.wrapSpanContext(parent);
    return tracer.startSpan(name, { kind, links: linked }, trace.setSpanContext(ROOT_CONTEXT, parent));
  }
  const traceId = newTraceId();
  if (!samples(traceId)) return UNSAMPLED;
  useTraceId(traceId);
  return tracer.startSpan(name, { kind, links: linked }, ROOT_CONTEXT);
}

/** The same for a message of another process of this system: without a context it belongs to a call that was not sampled. */
export function startInnerSpan(name: string, kind: SpanKind, parent?: SpanContext): Span | undefined {
  return settings && !parent ? UNSAMPLED : startSpan(name, kind, parent);
}

/** The same for a caller outside this system: where its sampling decision does not count, a new trace begins, with a link to that of the caller. */
export function startEntrySpan(name: string, kind: SpanKind, caller?: SpanContext): Span | undefined {
  return settings?.followsCallers ? startSpan(name, kind, caller) : startSpan(name, kind, undefined, [caller]);
}

/** Ends a span as failed. @param type a word of a small set, such as a status: error messages may contain the data of callers */
export function endFailed(span: Span | undefined, type: string): void {
  span?.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR });
  span?.end();
}

const scopes = new AsyncLocalStorage<Span | undefined>();
/** The storage is on only while it has spans: before Node 24 it makes every promise of the process slower. */
let running = 0;
let statement: Span | undefined;

/** Runs work whose statements, calls and log lines belong to a span, if the span is recorded. */
export async function runIn<T>(span: Span | undefined, work: () => Promise<T>): Promise<T> {
  if (!span?.isRecording()) return outside(work);
  running++;
  try {
    return await scopes.run(span, work);
  } finally {
    if (--running === 0) scopes.disable();
  }
}

/** Runs work that belongs to no span, not even to the active one. */
export const outside = <T>(work: () => T): T => (running > 0 ? scopes.run(undefined, work) : work());

/** Starts a statement that belongs to a span. Its statement is the one that `start` sends before it returns. */
export function inSpan<T>(span: Span | undefined, start: () => T): T {
  statement = span;
  try {
    return start();
  } finally {
    statement = undefined;
  }
}

/** The recorded span of {@link inSpan} or {@link runIn}. Work that outlives its span has none. */
export function activeSpan(): Span | undefined {
  const span = statement ?? (running > 0 ? scopes.getStore() : undefined);
  return span?.isRecording() ? span : undefined;
}

/** Trace context of a recorded span, for column `trace` of an outbox. */
export const traceOf = (span: Span | undefined): string | null => (span?.isRecording() ? storedTrace(span.spanContext()) : null);

/** The same of the active span. */
export const activeTrace = (): string | null => traceOf(activeSpan());

/** Headers for messages that belong to a span. @returns undefined when there is nothing to go on with */
export const headersOf = (span: Span | undefined): TraceHeaders | undefined =>
  span && span !== UNSAMPLED ? traceHeaders(span.spanContext()) : undefined;

/** Fields of a log line. @param span default: the active one */
export function traceFields(span = activeSpan()): { trace_id: string; span_id: string } | undefined {
  if (!span || span === UNSAMPLED) return undefined;
  const { traceId, spanId } = span.spanContext();
  return { trace_id: traceId, span_id: spanId };
}
