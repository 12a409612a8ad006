import { parseBrokerUrl } from '@app/amqp/broker-url';
import { accountSetting, publisherSettings } from '@app/runtime/common-settings';
import { parseManagementUrl } from './management-url';
import { list, optionalUrl, Settings, text, url } from '@app/runtime/settings';

const adminBroker = {
  amqpUrl: url(
    'AMQP_URL',
    ['amqp:', 'amqps:'],
    'RabbitMQ with the full-rights account, for setup and dead letters.',
    parseBrokerUrl,
  ),
  amqpCaFile: text('AMQP_CA_FILE', 'PEM file of the authority that signed the certificate of RabbitMQ.'),
};

/** Configuration of the one-shot declaration of exchanges and queues. */
export class TopologyConfig extends Settings(adminBroker) {}

const managementUrl = optionalUrl(
  'RABBITMQ_MANAGEMENT_URL',
  ['http:', 'https:'],
  'Management API of RabbitMQ. Accounts are created there, with the login of `AMQP_URL`. Setup without it: the accounts of the services must exist. Several nodes are separated by commas.',
  parseManagementUrl,
);

/** Configuration of the command line tool for the broker accounts of other services. */
export class OtherAccountsConfig extends Settings({ amqpUrl: adminBroker.amqpUrl, managementUrl }) {}

/** Configuration of the one-shot creation of broker accounts. */
export class AccountsConfig extends Settings({
  amqpUrl: adminBroker.amqpUrl,
  managementUrl,
  gateway: accountSetting('gateway'),
  users: accountSetting('users'),
  notifications: accountSetting('notifications'),
  publisher: optionalUrl(
    'PUBLISHER_AMQP_URL',
    ['amqp:', 'amqps:'],
    'RabbitMQ as a service that publishes notifications without waiting for replies. Setup creates this account too.',
    parseBrokerUrl,
  ),
}) {}

/** Configuration of the command line tool for dead letters. */
export class DeadLettersConfig extends Settings({
  ...adminBroker,
  services: list(
    'TRUSTED_PUBLISHERS',
    publisherSettings.trustedPublishers.fallback.split(','),
    'Broker accounts of all services, in addition to that of `AMQP_URL`. The headers that they write into dead letters are trusted.',
  ),
}) {}

export const topologyConfig = () => new TopologyConfig(process.env);
export const otherAccountsConfig = () => new OtherAccountsConfig(process.env);
export const accountsConfig = () => new AccountsConfig(process.env);
export const deadLettersConfig = () => new DeadLettersConfig(process.env);
