import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { accountSetting, publisherSettings } from '@app/runtime/settings/common-settings';
import { parseManagementUrl } from './management-url';
import { list, optionalUrl, Settings } from '@app/runtime/settings/settings';
import { brokerTlsSettings, brokerUrl } from '@app/runtime/settings/tls-settings';

const adminBroker = {
  amqpUrl: brokerUrl('AMQP_URL', 'RabbitMQ with the full-rights account, for setup and dead letters.'),
  ...brokerTlsSettings,
};

/** Configuration of the one-shot declaration of exchanges and queues. */
export class TopologyConfig extends Settings(adminBroker) {}

const managementUrl = optionalUrl(
  'RABBITMQ_MANAGEMENT_URL',
  ['http:', 'https:'],
  'Management API of RabbitMQ; `https:` for TLS, with the files of `AMQP_URL`. Accounts are created there, with the login of `AMQP_URL`. Setup without it: the accounts of the services must exist. Several nodes are separated by commas.',
  parseManagementUrl,
);

/** Configuration of the command line tool for the broker accounts of other services. */
export class OtherAccountsConfig extends Settings({ ...adminBroker, managementUrl }) {}

/** Configuration of the one-shot creation of broker accounts. */
export class AccountsConfig extends Settings({
  ...adminBroker,
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
