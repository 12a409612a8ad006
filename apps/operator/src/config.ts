import { AccountsConfig, DeadLettersConfig } from '@app/rabbitmq/config';
import { parseManagementUrl } from '@app/rabbitmq/management-url';
import { processSettings } from '@app/runtime/settings/common-settings';
import { databaseUrl } from '@app/runtime/settings/database-url';
import { address, hostPorts, list, longSecret, optionalUrl, port, Settings, type Setting } from '@app/runtime/settings/settings';
import { brokerTlsSettings, brokerUrl, databaseTlsSettings } from '@app/runtime/settings/tls-settings';

/** Most entries of OPERATOR_PROCESSES. */
const MOST_ADDRESSES = 100;
const TOKEN_BYTES = 32;

/** The same setting as elsewhere: the documentation has each variable once. */
const like = (settings: Record<string, Setting<unknown>>, name: string): Setting<unknown> => {
  const found = settings[name];
  if (!found) throw new Error(`There is no setting ${name}.`);
  return found;
};
const accounts = (name: string) => like(AccountsConfig.settings, name);
const services = like(DeadLettersConfig.settings, 'services');

/** Configuration of the operator's page. */
export class OperatorConfig extends Settings({
  ...processSettings,
  token: longSecret(
    'OPERATOR_TOKEN',
    TOKEN_BYTES,
    `Token with which operators sign in: a random text of at least ${TOKEN_BYTES} bytes, such as that of \`openssl rand -hex 32\`. It gives full rights.`,
  ),
  port: port('OPERATOR_PORT', 3001, "Port of the operator's page; 0 takes a free one and logs it."),
  host: address('OPERATOR_HOST', '127.0.0.1', 'Address of that port. `::` means all addresses of the machine, IPv4 included.'),
  processes: hostPorts(
    'OPERATOR_PROCESSES',
    MOST_ADDRESSES,
    'Operations ports (`HEALTH_PORT`) of the processes to watch: `host:port`, separated by commas. A name stands for all of its addresses, as that of a headless service does.',
  ),
  amqpUrl: brokerUrl('AMQP_URL', accounts('amqpUrl').description),
  managementUrl: optionalUrl(
    'RABBITMQ_MANAGEMENT_URL',
    ['http:', 'https:'],
    accounts('managementUrl').description,
    parseManagementUrl,
  ),
  ...brokerTlsSettings,
  services: list('TRUSTED_PUBLISHERS', services.fallback.split(','), services.description),
  databaseUrl: databaseUrl('DATABASE_URL', 'PostgreSQL with the full-rights account, for migrations.'),
  ...databaseTlsSettings,
}) {}
