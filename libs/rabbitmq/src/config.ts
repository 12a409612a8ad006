import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { accountSetting, publisherSettings } from '@app/runtime/settings/common-settings';
import { parseManagementUrl } from './management-url';
import { ConfigError, list, optionalUrl, Settings } from '@app/runtime/settings/settings';
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

const accounts = {
  gateway: accountSetting('gateway'),
  users: accountSetting('users'),
  notifications: accountSetting('notifications'),
  publisher: optionalUrl(
    'PUBLISHER_AMQP_URL',
    ['amqp:', 'amqps:'],
    'RabbitMQ as a service that publishes notifications without waiting for replies. Setup creates this account too.',
    parseBrokerUrl,
  ),
};

/** Configuration of the one-shot creation of broker accounts. */
export class AccountsConfig extends Settings({ ...adminBroker, managementUrl, ...accounts }) {
  /** URLs of the accounts that are made: those that differ from the full-rights account. Without the management API none is. */
  readonly made: Partial<Record<keyof typeof accounts, string>>;

  /**
   * @throws ConfigError also when two of them are one, which would have the rights of the last, when everybody knows the password of one, or when one
   *   has another virtual host, where it would have no rights
   */
  constructor(env?: NodeJS.ProcessEnv) {
    super(env);
    const { amqpUrl, gateway, users, notifications, publisher } = this;
    const nameIn = (url: string) => parseBrokerUrl(url).username;
    const vhostIn = (url: string) => decodeURIComponent(parseBrokerUrl(url).vhost);
    const urls = Object.entries({ gateway, users, notifications, publisher }).flatMap(([account, url]) =>
      this.managementUrl !== undefined && url !== undefined && nameIn(url) !== nameIn(amqpUrl) ? [[account, url] as const] : [],
    );
    const problems = urls.flatMap(([account, url], index) => {
      const variable = `${account.toUpperCase()}_AMQP_URL`;
      const [earlier] = urls.slice(0, index).find(([, other]) => nameIn(other) === nameIn(url)) ?? [];
      return [
        ...(earlier ? [`${variable} has the account of ${earlier.toUpperCase()}_AMQP_URL, and each needs one of its own`] : []),
        ...(vhostIn(url) === vhostIn(amqpUrl) ? [] : [`${variable} must have the virtual host of AMQP_URL`]),
        ...(parseBrokerUrl(url).password === 'guest' ? [`${variable} must have a password, and another one than guest`] : []),
      ];
    });
    if (problems.length > 0) throw new ConfigError(problems);
    this.made = Object.fromEntries(urls);
  }
}

/** Configuration of the command line tool for dead letters. */
export class DeadLettersConfig extends Settings({
  ...adminBroker,
  services: list(
    'TRUSTED_PUBLISHERS',
    publisherSettings.trustedPublishers.fallback.split(','),
    'Broker accounts of all services, in addition to that of `AMQP_URL`. The headers that they write into dead letters are trusted.',
  ),
}) {}
