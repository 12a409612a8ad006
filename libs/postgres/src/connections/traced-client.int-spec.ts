import { SpanKind } from '@opentelemetry/api';
import { AlwaysOnSampler, InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { requiredEnv } from '@app/testing/required-env';
import { inSpan, startSpan, useTracing } from '@app/tracing/tracing';
import { DatabaseServers } from './database-servers';
import { TracedClient } from './traced-client';

describe('TracedClient', () => {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({
    sampler: new AlwaysOnSampler(),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  });
  let client: TracedClient;

  beforeAll(async () => {
    useTracing({ tracer: provider.getTracer('test'), followsCallers: true, samples: () => true });
    client = new TracedClient({ servers: new DatabaseServers(requiredEnv('TEST_DATABASE_URL')) });
    await client.connect();
  });
  afterAll(() => useTracing(undefined));

  const failed = async (text: string, meanwhile?: () => Promise<void>) => {
    exporter.reset();
    const ended = inSpan(startSpan('call', SpanKind.INTERNAL), () => client.query(text)).catch(() => undefined);
    await meanwhile?.();
    await ended;
    return exporter.getFinishedSpans().map(({ name, attributes }) => [name, attributes['error.type']]);
  };

  it('names the SQLSTATE of a statement that fails', async () => {
    expect(await failed('SELECT 1 / 0')).toEqual([['SELECT', '22012']]);
  });

  it('names a connection that ends, whose error has no code', async () => {
    expect(await failed('SELECT pg_sleep(60)', () => client.end())).toEqual([['SELECT', 'lost']]);
  });
});
