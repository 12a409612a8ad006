/** Sampler names of the specification. */
export const SAMPLERS = [
  'parentbased_always_on',
  'parentbased_traceidratio',
  'parentbased_always_off',
  'always_on',
  'traceidratio',
  'always_off',
] as const;
export const PROTOCOLS = ['http/protobuf', 'http/json'] as const;

export interface TracingConfig {
  otlpEndpoint?: string;
  otlpProtocol: (typeof PROTOCOLS)[number];
  /** `name=value` pairs separated by commas, percent-encoded. */
  otlpHeaders?: string;
  tracesSampler: (typeof SAMPLERS)[number];
  /** 0 to 1. */
  tracesRatio: number;
  /** Default: the name of the process. */
  serviceName?: string;
}
