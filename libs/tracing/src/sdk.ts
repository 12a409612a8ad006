import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT_CONTEXT, SpanKind } from '@opentelemetry/api';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
} from '@opentelemetry/sdk-trace';
import { EarlyProcessor } from './early-processor';
import { IDS } from './ids';
import type { TracingConfig } from './tracing-config';
import { useTracing } from './tracing';

const FLUSH_TIMEOUT_MS = 2000;
/** Of an attribute with text of a caller, such as a message id. */
const MAX_VALUE_LENGTH = 255;
/** Commands of a message, or notifications of a batch. */
const MAX_LINKS = 128;

export function startSdk(
  { name, version }: { name: string; version: string },
  config: TracingConfig & { otlpEndpoint: string },
): () => Promise<void> {
  const { otlpEndpoint, otlpProtocol, otlpHeaders = '', tracesSampler, tracesRatio, serviceName = name } = config;
  const url = `${otlpEndpoint.replace(/\/+$/, '')}/v1/traces`;
  const sampler = samplerOf(tracesSampler, tracesRatio);
  const provider = new TracerProvider({
    resource: detectResources({ detectors: [envDetector] }).merge(
      resourceFromAttributes({ 'service.name': serviceName, 'service.version': version, 'service.instance.id': randomUUID() }),
    ),
    sampler,
    idGenerator: IDS,
    spanLimits: { attributeValueLengthLimit: MAX_VALUE_LENGTH, linkCountLimit: MAX_LINKS },
    spanProcessors: [new EarlyProcessor(otlpProtocol, url, headersOf(otlpHeaders))],
  });
  useTracing({
    tracer: provider.getTracer('collaboration-backend', version),
    followsCallers: tracesSampler.startsWith('parentbased_'),
    samples: (traceId) =>
      sampler.shouldSample(ROOT_CONTEXT, traceId, '', SpanKind.INTERNAL, {}, []).decision === SamplingDecision.RECORD_AND_SAMPLED,
  });
  return () => Promise.race([provider.shutdown(), sleep(FLUSH_TIMEOUT_MS)]).catch(() => undefined);
}

function samplerOf(name: TracingConfig['tracesSampler'], ratio: number): Sampler {
  const root = name.endsWith('traceidratio')
    ? new TraceIdRatioBasedSampler(ratio)
    : name.endsWith('always_on')
      ? new AlwaysOnSampler()
      : new AlwaysOffSampler();
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

const headersOf = (pairs: string): Record<string, string> =>
  Object.fromEntries(
    pairs.split(',').flatMap((pair) => {
      const [key, ...value] = pair.split('=');
      return key.trim() ? [[key.trim(), decoded(value.join('=').trim())]] : [];
    }),
  );
