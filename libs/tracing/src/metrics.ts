import { Counter, Gauge } from 'prom-client';

export const spansEnded = new Counter({
  name: 'trace_spans_ended_total',
  help: 'Sampled spans that have ended.',
});

export const spansExported = new Counter({
  name: 'trace_spans_exported_total',
  help: 'Spans that the receiver of traces has taken. Far fewer than have ended: it is away or too slow, and spans are dropped.',
});

export const queueLimit = new Gauge({
  name: 'trace_queue_limit',
  help: 'Spans that may wait for the receiver of traces. Further ones are dropped. 0 while tracing is off.',
});
