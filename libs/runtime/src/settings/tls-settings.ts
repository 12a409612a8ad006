import { parseBrokerUrl } from './broker-url';
import { pemFile, url, type Setting } from './settings';
import type { TlsFiles } from './tls-files';

const BROKER_FILES = ['AMQP_CA_FILE', 'AMQP_CERT_FILE', 'AMQP_KEY_FILE'] as const;
const DATABASE_FILES = ['DATABASE_CA_FILE', 'DATABASE_CERT_FILE', 'DATABASE_KEY_FILE'] as const;

/** Files for TLS with RabbitMQ and its management API. */
export const brokerTlsSettings = {
  amqpCaFile: pemFile(
    BROKER_FILES[0],
    'PEM file of the authorities that sign the certificates of RabbitMQ, read for each connection.',
  ),
  amqpCertFile: pemFile(
    BROKER_FILES[1],
    'PEM file of the own certificate, for a RabbitMQ that demands one beside user and password; read for each connection.',
    BROKER_FILES[2],
  ),
  amqpKeyFile: pemFile(BROKER_FILES[2], 'PEM file of the key of that certificate.', BROKER_FILES[1]),
};

/** Files for TLS with PostgreSQL. */
export const databaseTlsSettings = {
  databaseCaFile: pemFile(
    DATABASE_FILES[0],
    'PEM file of the authorities that sign the certificates of PostgreSQL, read for each connection.',
  ),
  databaseCertFile: pemFile(
    DATABASE_FILES[1],
    'PEM file of the own certificate, for a PostgreSQL that demands one beside user and password; read for each connection.',
    DATABASE_FILES[2],
  ),
  databaseKeyFile: pemFile(DATABASE_FILES[2], 'PEM file of the key of that certificate.', DATABASE_FILES[1]),
};

type Of<S> = { [K in keyof S]: string | undefined };

/** The files of {@link brokerTlsSettings}. */
export const brokerTlsFiles = (config: Of<typeof brokerTlsSettings>): TlsFiles => ({
  caFile: config.amqpCaFile,
  certFile: config.amqpCertFile,
  keyFile: config.amqpKeyFile,
});

/** The files of {@link databaseTlsSettings}. */
export const databaseTlsFiles = (config: Of<typeof databaseTlsSettings>): TlsFiles => ({
  caFile: config.databaseCaFile,
  certFile: config.databaseCertFile,
  keyFile: config.databaseKeyFile,
});

/** URL of RabbitMQ. Files for TLS demand `amqps:`: with `amqp:` they would be ignored, and everything be sent in the clear. */
export function brokerUrl(names: Parameters<typeof url>[0], description: string): Setting<string> {
  const setting = url(names, ['amqp:', 'amqps:'], description, parseBrokerUrl);
  return {
    ...setting,
    read: (raw, env) => {
      const file = BROKER_FILES.find((name) => env[name]);
      return file && raw?.startsWith('amqp:')
        ? { problem: `must start with amqps:// because ${file} is set` }
        : setting.read(raw, env);
    },
  };
}

/** @returns why this URL of one server does not lead to a verified server, as the rest of a sentence that starts with the variable's name */
export function databaseTlsObstacle(url: string, env: NodeJS.ProcessEnv): string | undefined {
  const parameters = new URL(url).searchParams;
  const mode = parameters.get('sslmode');
  // They are read at start only, or switch the verification off.
  const foreign = [...parameters.keys()].find((name) => (/^ssl/.test(name) && name !== 'sslmode') || name === 'uselibpqcompat');
  if (foreign) return `must not have the parameter ${foreign}: use sslmode=verify-full and ${DATABASE_FILES.join(', ')}`;
  // Each driver means something else by `prefer`, `require` and `verify-ca`, and none of them verifies as much.
  if (mode !== null && !['verify-full', 'disable'].includes(mode)) return 'must have sslmode=verify-full or sslmode=disable';
  const file = DATABASE_FILES.find((name) => env[name]);
  return file && mode === 'disable' ? `must not have sslmode=disable because ${file} is set` : undefined;
}
