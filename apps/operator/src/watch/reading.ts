import { callQueue } from '@app/rabbitmq/topology/topology';
import { Metrics, type Histogram, type Sample } from './metrics-text';

/** The state of one process at one moment, as it reports it. Counters begin with the process. */
export interface Reading {
  /** Milliseconds of a monotonic clock. */
  at: number;
  service: string;
  version: string;
  /** Seconds since 1970. */
  startedAt: number;
  cpuSeconds: number;
  memoryBytes: number;
  /** Calls of the gateway, and deliveries of a service. */
  work: number;
  /** By a fault of this system. */
  failed: number;
  /** By a limit, or because of what was sent. */
  refused: number;
  latency: Histogram;
  /** Calls of the gateway by route, and deliveries of a service by pattern. */
  operations: Map<string, { count: number; failed: number; latency: Histogram }>;
  queues: { name: string; messages: number; consumers: number; limit: number }[];
  /** Time from publication to the turn, by queue. */
  ages: Map<string, Histogram>;
  outbox?: { events: number; oldestSeconds: number; published: number };
  writer?: { waiting: number; seconds: Histogram; batches: number; notifications: number };
  pool?: { busy: number; limit: number };
}

const HISTOGRAMS = [
  'http_request_seconds',
  'rabbitmq_delivery_seconds',
  'rabbitmq_command_age_seconds',
  'notification_batch_seconds',
  'notification_batch_size',
];
const WANTED: ReadonlySet<string> = new Set([
  ...HISTOGRAMS.flatMap((name) => [`${name}_bucket`, `${name}_sum`, `${name}_count`]),
  'build_info',
  'process_start_time_seconds',
  'process_cpu_seconds_total',
  'process_resident_memory_bytes',
  'gateway_rate_limited_total',
  'rabbitmq_deliveries_total',
  'rabbitmq_prefetch',
  'queue_messages',
  'queue_consumers',
  'queue_messages_limit',
  'outbox_events',
  'outbox_oldest_seconds',
  'outbox_published_total',
  'notification_writer_waiting',
  'database_pool_connections',
  'database_pool_connections_limit',
]);

/** @param text answer of /metrics */
export function readingOf(text: string, at: number): Reading {
  const metrics = new Metrics(text, WANTED);
  const sum = (...parameters: Parameters<Metrics['sum']>) => metrics.sum(...parameters) ?? 0;
  const [build] = metrics.all('build_info');
  const service = build?.labels.service ?? 'unknown';
  const isGateway = service === 'gateway';
  return {
    at,
    service,
    version: build?.labels.version ?? 'unknown',
    startedAt: sum('process_start_time_seconds'),
    cpuSeconds: sum('process_cpu_seconds_total'),
    memoryBytes: sum('process_resident_memory_bytes'),
    work: isGateway ? sum('http_request_seconds_count', isCall) : sum('rabbitmq_deliveries_total'),
    failed: isGateway
      ? sum('http_request_seconds_count', (labels) => isCall(labels) && labels.status?.startsWith('5') === true)
      : sum('rabbitmq_deliveries_total', isFailed),
    refused: isGateway
      ? sum('gateway_rate_limited_total') + sum('http_request_seconds_count', (labels) => isCall(labels) && isRefused(labels))
      : sum('rabbitmq_deliveries_total', ({ outcome = '' }) => outcome.startsWith('refused')),
    latency: isGateway ? metrics.histogram('http_request_seconds', isCall) : metrics.histogram('rabbitmq_delivery_seconds'),
    operations: isGateway ? routesOf(metrics) : patternsOf(metrics),
    queues: metrics.all('queue_messages').map(({ labels: { queue: name = '' }, value }) => {
      const ofQueue = ({ queue }: Readonly<Record<string, string>>) => queue === name;
      const consumers = sum('queue_consumers', ofQueue);
      return { name, messages: value, consumers, limit: sum('queue_messages_limit', ofQueue) };
    }),
    ages: byLabel(metrics.all('rabbitmq_command_age_seconds_count'), 'queue', (name) =>
      metrics.histogram('rabbitmq_command_age_seconds', ({ queue }) => queue === name),
    ),
    ...(metrics.sum('outbox_events') !== undefined && {
      outbox: {
        events: sum('outbox_events'),
        oldestSeconds: sum('outbox_oldest_seconds'),
        published: sum('outbox_published_total'),
      },
    }),
    // Readers of notifications have the metrics of a writer, too.
    ...(metrics.sum('rabbitmq_prefetch', ({ queue }) => queue === callQueue('notifications')) !== undefined && {
      writer: {
        waiting: sum('notification_writer_waiting'),
        seconds: metrics.histogram('notification_batch_seconds'),
        batches: sum('notification_batch_size_count'),
        notifications: sum('notification_batch_size_sum'),
      },
    }),
    ...(metrics.sum('database_pool_connections') !== undefined && {
      pool: {
        busy: sum('database_pool_connections', ({ state }) => state === 'busy'),
        limit: sum('database_pool_connections_limit'),
      },
    }),
  };
}

function routesOf(metrics: Metrics): Reading['operations'] {
  return byLabel(metrics.all('http_request_seconds_count', isCall), 'route', (route) => ({
    count: metrics.sum('http_request_seconds_count', (labels) => labels.route === route) ?? 0,
    failed: metrics.sum('http_request_seconds_count', (labels) => labels.route === route && /^5/.test(labels.status ?? '')) ?? 0,
    latency: metrics.histogram('http_request_seconds', (labels) => labels.route === route),
  }));
}

function patternsOf(metrics: Metrics): Reading['operations'] {
  return byLabel(metrics.all('rabbitmq_deliveries_total'), 'pattern', (pattern) => ({
    count: metrics.sum('rabbitmq_deliveries_total', (labels) => labels.pattern === pattern) ?? 0,
    failed: metrics.sum('rabbitmq_deliveries_total', (labels) => labels.pattern === pattern && isFailed(labels)) ?? 0,
    latency: metrics.histogram('rabbitmq_delivery_seconds', (labels) => labels.pattern === pattern),
  }));
}

function byLabel<T>(samples: readonly Sample[], label: string, read: (value: string) => T): Map<string, T> {
  return new Map([...new Set(samples.map(({ labels }) => labels[label] ?? ''))].map((value) => [value, read(value)]));
}

/** Not the probes of load balancers, nor the documentation: they would be most of what an idle gateway answers. */
const isCall = ({ route = '' }: Sample['labels']): boolean => route.startsWith('/v1/');
/** Limits count what they answer with 429. With 499 the client has left. */
const isRefused = ({ status = '' }: Sample['labels']): boolean => /^4/.test(status) && status !== '429' && status !== '499';

/** Outcomes and statuses of a delivery that failed by no fault of its publisher. */
const FAILED = new Set(['dead', 'suspect', 'again', 'crashed', 'reply_lost', 'INTERNAL', 'UNAVAILABLE', 'DEADLINE_EXCEEDED']);
const isFailed = ({ outcome = '', status = '' }: Sample['labels']): boolean => FAILED.has(outcome) || FAILED.has(status);
