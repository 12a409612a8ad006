import { SpanKind } from '@opentelemetry/api';
import { activeSpan, endFailed, isTracing, startSpan } from '@app/tracing/tracing';
import { sqlState } from '../errors';
import { ImpatientClient } from './impatient-client';
import type { WritableClientConfig } from './writable-client';

type Query = (...parameters: unknown[]) => unknown;

/** Statement names remembered by their text. There are about a hundred. */
const MOST_NAMES = 1000;

/**
 * A connection whose statements have a span, by OpenTelemetry's conventions for PostgreSQL, while a span is active. Its name is that of the prepared
 * statement, or the first verb and table. Neither text nor parameters are attributes.
 */
export class TracedClient extends ImpatientClient {
  constructor(config: WritableClientConfig & { schema?: string }) {
    super(config);
    if (!isTracing()) return;
    const query = this.query.bind(this) as Query;
    const { database = '', host, port } = this;
    const attributes = {
      'db.system.name': 'postgresql',
      'db.namespace': [database, config.schema].filter(Boolean).join('|'),
      'server.address': host,
      'server.port': port,
    };
    const traced: Query = (...parameters) => {
      const parent = activeSpan();
      if (!parent) return query(...parameters);
      const name = nameOf(parameters[0]);
      const span = startSpan(name, SpanKind.CLIENT, parent.spanContext());
      span?.setAttributes(attributes).setAttribute('db.query.summary', name);
      const answer = query(...parameters);
      if (!(answer instanceof Promise)) span?.end();
      else
        answer.then(
          () => span?.end(),
          (error: unknown) => {
            const state = sqlState(error);
            if (state) span?.setAttribute('db.response.status_code', state);
            endFailed(span, state || 'lost');
          },
        );
      return answer;
    };
    this.query = traced as typeof this.query;
  }
}

const names = new Map<string, string>();

function nameOf(statement: unknown): string {
  const { name, text } = typeof statement === 'string' ? { text: statement } : (statement as { name?: string; text?: string });
  if (name !== undefined) return name;
  let known = names.get(text ?? '');
  if (known === undefined) {
    known = summaryOf(text ?? '');
    if (names.size < MOST_NAMES) names.set(text ?? '', known);
  }
  return known;
}

function summaryOf(text: string): string {
  const [verb = 'statement'] = /\b(?:SELECT|INSERT|UPDATE|DELETE)\b/i.exec(text) ?? /\w+/.exec(text) ?? [];
  const [, table] = /\b(?:FROM|INTO|UPDATE)\s+([a-z_]+)/i.exec(text) ?? [];
  return [verb.toUpperCase(), table].filter(Boolean).join(' ');
}
