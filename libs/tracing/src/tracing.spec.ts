import { SpanKind } from '@opentelemetry/api';
import { AlwaysOnSampler, InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { readTrace } from './trace-context';
import {
  activeSpan,
  activeTrace,
  headersOf,
  outside,
  runIn,
  startEntrySpan,
  startInnerSpan,
  startSpan,
  traceFields,
  useTracing,
} from './tracing';

const CALLER = readTrace('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01')!;

const turn = () => new Promise(setImmediate);

const exporter = new InMemorySpanExporter();
const provider = new TracerProvider({ sampler: new AlwaysOnSampler(), spanProcessors: [new SimpleSpanProcessor({ exporter })] });
const on = (followsCallers: boolean) => useTracing({ tracer: provider.getTracer('test'), followsCallers, samples: () => true });

beforeEach(() => exporter.reset());
afterEach(() => useTracing(undefined));

it('makes nothing while it is off', async () => {
  expect(startSpan('span', SpanKind.INTERNAL, CALLER)).toBeUndefined();
  await expect(runIn(undefined, async () => activeSpan())).resolves.toBeUndefined();
  expect([activeTrace(), traceFields()]).toEqual([null, undefined]);
});

it('goes on with the trace of a caller where its decision counts', () => {
  on(true);
  startEntrySpan('entry', SpanKind.SERVER, CALLER)?.end();
  const [span] = exporter.getFinishedSpans();
  expect(span.spanContext().traceId).toBe(CALLER.traceId);
  expect(span.parentSpanContext?.spanId).toBe(CALLER.spanId);
});

it('records nothing of a call that its caller does not sample', () => {
  on(true);
  const span = startEntrySpan('entry', SpanKind.SERVER, { ...CALLER, traceFlags: 0 })!;
  expect([span.isRecording(), span.spanContext().traceId]).toEqual([false, CALLER.traceId]);
});

it.each([true, false])(
  'makes no ids for a call that is not sampled, nor for what follows from it (parent-based: %s)',
  (parentBased) => {
    useTracing({ tracer: provider.getTracer('test'), followsCallers: parentBased, samples: () => false });
    const entry = startEntrySpan('entry', SpanKind.SERVER)!;
    const call = startSpan('call', SpanKind.PRODUCER, entry.spanContext());
    for (const span of [entry, call, startInnerSpan('process', SpanKind.CONSUMER)]) {
      expect(span).toBe(entry);
      expect([span!.isRecording(), headersOf(span), traceFields(span)]).toEqual([false, undefined, undefined]);
    }
  },
);

it('begins no trace for a message of this system that carries none', () => {
  on(true);
  expect(startInnerSpan('process', SpanKind.CONSUMER)!.isRecording()).toBe(false);
  expect(startInnerSpan('process', SpanKind.CONSUMER, CALLER)!.isRecording()).toBe(true);
});

it('begins a trace with a link to that of a caller whose decision does not count, because it could choose an id that is sampled', () => {
  on(false);
  startEntrySpan('entry', SpanKind.SERVER, CALLER)?.end();
  const [span] = exporter.getFinishedSpans();
  expect(span.spanContext().traceId).not.toBe(CALLER.traceId);
  expect(span.parentSpanContext).toBeUndefined();
  expect(span.links.map(({ context }) => context.spanId)).toEqual([CALLER.spanId]);
});

it('knows the span of the work, also of work at the same time, and none after its end', async () => {
  on(true);
  const work = (name: string) => {
    const span = startSpan(name, SpanKind.INTERNAL)!;
    return runIn(span, async () => {
      await turn();
      expect(activeSpan()).toBe(span);
      expect(traceFields()).toEqual({ trace_id: span.spanContext().traceId, span_id: span.spanContext().spanId });
      expect(outside(() => activeSpan())).toBeUndefined();
      span.end();
      expect(activeSpan()).toBeUndefined();
    });
  };
  await Promise.all([work('one'), work('two')]);
  expect(activeSpan()).toBeUndefined();
});

it('hides the span from work that outlives it', async () => {
  on(true);
  const span = startSpan('span', SpanKind.INTERNAL)!;
  let later: Promise<unknown> | undefined;
  await runIn(span, async () => {
    later = turn().then(() => activeSpan());
  });
  await expect(later).resolves.toBeUndefined();
});
