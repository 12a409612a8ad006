// Not with the SDK: every process shows these metrics, also while tracing is off.
import './metrics';
import type { TracingConfig } from './tracing-config';

/**
 * Starts the SDK when there is a receiver. Otherwise none of its packages is loaded.
 *
 * @returns a function that sends the last spans, within 2 s
 */
export async function startTracing(
  process: { name: string; version: string },
  config: TracingConfig,
): Promise<() => Promise<void>> {
  if (config.otlpEndpoint === undefined) return async () => undefined;
  const { startSdk } = await import('./sdk.js');
  return startSdk(process, { ...config, otlpEndpoint: config.otlpEndpoint });
}
