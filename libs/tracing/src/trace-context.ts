import { createTraceState, isSpanContextValid, TraceFlags, type SpanContext } from '@opentelemetry/api';

/** W3C trace context as headers of HTTP and of messages. */
export interface TraceHeaders {
  traceparent: string;
  tracestate?: string;
}

const VERSION_00 = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
/** Characters of a version 00 traceparent, which is all that is read of one. */
const TRACEPARENT_LENGTH = 55;
/** The specification asks to keep at least this many characters. A longer tracestate is dropped, and the trace goes on without it. */
const MAX_TRACESTATE = 512;
const PRINTABLE = /^[\x20-\x7e]*$/;

/**
 * Reads the trace context of an untrusted sender. Baggage is not read.
 *
 * @returns undefined without a valid traceparent of version 00
 */
export function readTrace(traceparent: unknown, tracestate?: unknown): SpanContext | undefined {
  if (typeof traceparent !== 'string' || traceparent.length !== TRACEPARENT_LENGTH) return undefined;
  const [, traceId, spanId, flags] = VERSION_00.exec(traceparent) ?? [];
  if (flags === undefined) return undefined;
  const context: SpanContext = { traceId, spanId, traceFlags: parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
  if (!isSpanContextValid(context)) return undefined;
  if (isReadableState(tracestate)) context.traceState = createTraceState(tracestate);
  return context;
}

const isReadableState = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= MAX_TRACESTATE && PRINTABLE.test(value);

export function traceHeaders({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceHeaders {
  const tracestate = traceState?.serialize();
  const traceparent = `00-${traceId}-${spanId}-0${traceFlags & TraceFlags.SAMPLED}`;
  return tracestate ? { traceparent, tracestate } : { traceparent };
}

export const isSampled = (context: SpanContext | undefined): context is SpanContext =>
  context !== undefined && (context.traceFlags & TraceFlags.SAMPLED) !== 0;

/** Both headers in one text, for a column. */
export function storedTrace(context: SpanContext): string {
  const { traceparent, tracestate = '' } = traceHeaders(context);
  return `${traceparent} ${tracestate}`.trimEnd();
}

/** Reads what {@link storedTrace} has made. */
export const readStoredTrace = (text: string | null | undefined): SpanContext | undefined =>
  text ? readTrace(text.slice(0, TRACEPARENT_LENGTH), text.slice(TRACEPARENT_LENGTH + 1)) : undefined;
