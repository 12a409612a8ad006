import { address, choice, integer, list, optionalUrl, port, text, url } from './settings';
import { LOG_LEVELS } from './logger';

/** Settings of every process. */
export const processSettings = {
  logLevel: choice('LOG_LEVEL', 'info', LOG_LEVELS, 'Least severe log lines that are written.'),
  healthPort: port('HEALTH_PORT', 0, 'Port of `/health/live`, `/health/ready` and `/metrics`; 0 takes a free one and logs it.'),
  healthHost: address('HEALTH_HOST', '::', 'Address of that port; `::` is every one of the machine, IPv4 as well.'),
  shutdownDelayMs: integer(
    'SHUTDOWN_DELAY_MS',
    0,
    { min: 0, max: 15_000 },
    'Milliseconds between "not ready" and the end of accepting work after SIGTERM; at least what the load balancer needs to notice.',
  ),
};

const ownBrokerUrl = (service: string) => `${service.toUpperCase()}_AMQP_URL`;
const brokerUrlMeaning = (service: string) => `RabbitMQ as the ${service} service; \`amqps:\` for TLS.`;

/** The account of a service, for whoever creates it. */
export const accountSetting = (service: string) =>
  optionalUrl(ownBrokerUrl(service), ['amqp:', 'amqps:'], brokerUrlMeaning(service));

/** How a service reaches RabbitMQ: its own account when it has one, else the full-rights one. */
export const brokerSettings = (service: string) => ({
  amqpUrl: url([ownBrokerUrl(service), 'AMQP_URL'], ['amqp:', 'amqps:'], brokerUrlMeaning(service)),
  amqpCaFile: text('AMQP_CA_FILE', 'PEM file of the authority that signed the certificate of RabbitMQ.'),
});

/** Where a process publishes what it waits for. */
export const callsSettings = {
  callsExchange: choice(
    'CALLS_EXCHANGE',
    'calls',
    ['calls', 'commands'] as const,
    'Where a process publishes what it waits for; `commands` while services of versions without lanes run beside it.',
  ),
};

/** Whose word a service takes for whom a message is from. */
export const publisherSettings = {
  trustedPublishers: list(
    'TRUSTED_PUBLISHERS',
    ['gateway', 'users', 'notifications'],
    "Broker accounts that may name any API key, beside the service's own: those of the services. Every other one needs a grant.",
  ),
};

/** How a service reaches PostgreSQL: its own role when it has one, else the full-rights one. */
export const databaseSettings = (service: string) => ({
  databaseUrl: url(
    [`${service.toUpperCase()}_DATABASE_URL`, 'DATABASE_URL'],
    ['postgres:', 'postgresql:'],
    `PostgreSQL as the ${service} service; \`?sslmode=verify-full\` for TLS.`,
  ),
  databaseCaFile: text('DATABASE_CA_FILE', 'PEM file of the authority that signed the certificate of PostgreSQL.'),
  databasePoolSize: integer('DATABASE_POOL_SIZE', 10, { min: 1, max: 200 }, 'Most connections to PostgreSQL of one process.'),
});
