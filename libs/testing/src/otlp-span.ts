export interface ReceivedSpan {
  service: string;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  /** As in OTLP: 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number;
  attributes: Readonly<Record<string, unknown>>;
  /** Ids of the linked spans. */
  links: readonly string[];
  failed: boolean;
}

/** An attribute, as in OTLP. */
export interface Field {
  key: string;
  value: Record<string, unknown>;
}
