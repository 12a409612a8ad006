import { SpanKind, type Span } from '@opentelemetry/api';
import { startSpan } from './tracing';

/**
 * The span of a statement for several commands. It is in the trace of the first sampled command, and linked with the spans of all sampled ones, in
 * both directions.
 *
 * @returns undefined when no command of the batch is sampled
 */
export function startBatch(name: string, entries: readonly { span?: Span }[]): Span | undefined {
  const members = entries.flatMap(({ span }) => (span?.isRecording() ? span : []));
  const contexts = members.map((member) => member.spanContext());
  const batch = contexts[0] && startSpan(name, SpanKind.INTERNAL, contexts[0], contexts);
  if (!batch) return undefined;
  batch.setAttribute('collaboration.batch.size', entries.length);
  for (const member of members.slice(1)) member.addLink({ context: batch.spanContext() });
  return batch;
}
