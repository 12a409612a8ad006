import { parseBrokerUrl } from './broker-url';
import { databaseUrl } from './database-url';
import { address, choice, integer, list, optionalUrl, port, secretText, share, text, type Setting } from './settings';
import { LOG_LEVELS } from './log-levels';
import { PROTOCOLS, SAMPLERS } from '@app/tracing/tracing-config';
import { brokerTlsSettings, brokerUrl, databaseTlsSettings } from './tls-settings';

/** Longest time from the end of the shutdown delay to the exit. Delay plus this must be shorter than the time after which the platform kills. */
export const SHUTDOWN_LIMIT_MS = 20_000;

/** Settings of traces. Names and defaults are those of OpenTelemetry. */
const tracingSettings = {
  otlpEndpoint: optionalUrl(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    ['http:', 'https:'],
    'Receiver of traces (OTLP over HTTP), for example `http://collector:4318`; `/v1/traces` is added. Unset: no traces.',
  ),
  otlpProtocol: choice(
    'OTEL_EXPORTER_OTLP_PROTOCOL',
    'http/protobuf',
    PROTOCOLS,
    'Encoding of traces: `http/protobuf` or `http/json`.',
  ),
  otlpHeaders: secretText(
    'OTEL_EXPORTER_OTLP_HEADERS',
    'Headers for the receiver, such as `authorization=Bearer%20…`: pairs separated by commas, values percent-encoded.',
  ),
  tracesSampler: choice(
    'OTEL_TRACES_SAMPLER',
    'parentbased_always_on',
    SAMPLERS,
    `Which calls have a trace: ${SAMPLERS.map((name) => `\`${name}\``).join(', ')}. With \`parentbased_\` a caller with a trace of its own decides for its calls.`,
  ),
  tracesRatio: share('OTEL_TRACES_SAMPLER_ARG', 1, 'Share of the calls for samplers with `traceidratio`, 0 to 1.'),
  serviceName: text('OTEL_SERVICE_NAME', 'Name of the process in traces. Unset: that of the program, such as `gateway`.'),
};

/** Settings of every process. */
export const processSettings = {
  ...tracingSettings,
  logLevel: choice('LOG_LEVEL', 'info', LOG_LEVELS, 'Least severe log lines that are written.'),
  healthPort: port('HEALTH_PORT', 0, 'Port of `/health/live`, `/health/ready` and `/metrics`; 0 takes a free one and logs it.'),
  healthHost: address('HEALTH_HOST', '::', 'Address of that port. `::` means all addresses of the machine, IPv4 included.'),
  shutdownDelayMs: integer(
    'SHUTDOWN_DELAY_MS',
    0,
    { min: 0, max: 15_000 },
    'Milliseconds after SIGTERM between "not ready" and the end of accepting work. At least the time that the load balancer needs to notice, at most 15000.',
  ),
};

const ownBrokerUrl = (service: string) => `${service.toUpperCase()}_AMQP_URL`;
const brokerUrlMeaning = (service: string) =>
  `RabbitMQ as the ${service} service; \`amqps:\` for TLS. The nodes of a cluster are separated by commas: \`amqp://user:password@host1,host2/vhost\`.`;

/** The broker account of a service, for the tool that creates it. */
export const accountSetting = (service: string) =>
  optionalUrl(ownBrokerUrl(service), ['amqp:', 'amqps:'], brokerUrlMeaning(service), parseBrokerUrl);

/** Connection to RabbitMQ: with the service's own account if it has one, else with the full-rights account. */
export const brokerSettings = (service: string) => ({
  amqpUrl: brokerUrl([ownBrokerUrl(service), 'AMQP_URL'], brokerUrlMeaning(service)),
  ...brokerTlsSettings,
});

/** Exchange to which a process publishes its calls. */
export const callsSettings = {
  callsExchange: choice(
    'CALLS_EXCHANGE',
    'calls',
    ['calls', 'commands'] as const,
    'Exchange for calls, which are messages that wait for a reply. `commands` while services of versions without lanes still run.',
  ),
};

/** Publishers that a service trusts to name any tenant. */
export const publisherSettings = {
  trustedPublishers: list(
    'TRUSTED_PUBLISHERS',
    ['gateway', 'users', 'notifications'],
    "Broker accounts that may name any API key, in addition to the service's own: the accounts of the services. All others need a grant.",
  ),
};

const databasePoolSize = integer(
  'DATABASE_POOL_SIZE',
  10,
  { min: 1, max: 200 },
  'Most connections to PostgreSQL of one process. A users process has one more.',
);

/**
 * A number of deliveries that are handled at a time. By default it leaves some connections of the pool to other work, also of a smaller pool.
 *
 * @param spare how many
 */
export function prefetchBelowPool(name: string, fallback: number, spare: number, description: string): Setting<number> {
  const given = integer(name, fallback, { min: 1, max: 2000 }, description);
  return {
    ...given,
    read: (raw, env) => {
      const pool = databasePoolSize.read(env.DATABASE_POOL_SIZE?.trim() || undefined, env);
      if (raw !== undefined || 'problem' in pool) return given.read(raw, env);
      return { value: Math.max(1, Math.min(fallback, pool.value - spare)) };
    },
  };
}

/** Connection to PostgreSQL: with the service's own role if it has one, else with the full-rights role. */
export const databaseSettings = (service: string) => ({
  databaseUrl: databaseUrl(
    [`${service.toUpperCase()}_DATABASE_URL`, 'DATABASE_URL'],
    `PostgreSQL as the ${service} service: one server, or several separated by commas, of which the writable one is used; \`?sslmode=verify-full\` for TLS.`,
  ),
  ...databaseTlsSettings,
  databasePoolSize,
});
