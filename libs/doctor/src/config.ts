import { AccountsConfig, TopologyConfig } from '@app/rabbitmq/config';
import { parseManagementUrl } from '@app/rabbitmq/management-url';
import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { accountSetting, databaseSettings, publisherSettings } from '@app/runtime/settings/common-settings';
import { optionalDatabaseUrl } from '@app/runtime/settings/database-url';
import { optionalUrl, Settings } from '@app/runtime/settings/settings';
import { brokerTlsSettings, databaseTlsSettings } from '@app/runtime/settings/tls-settings';

/** The same text as elsewhere: the documentation has each variable once. */
const meaningOf = ({ settings }: Pick<typeof TopologyConfig, 'settings'>, name: string) => settings[name]?.description ?? '';

const roleOf = (service: 'users' | 'notifications') =>
  optionalDatabaseUrl(`${service.toUpperCase()}_DATABASE_URL`, databaseSettings(service).databaseUrl.description);

/** Configuration of the doctor: it looks at whatever is set. The variables are those of set-up and the services. */
export class DoctorConfig extends Settings({
  amqpUrl: optionalUrl('AMQP_URL', ['amqp:', 'amqps:'], meaningOf(TopologyConfig, 'amqpUrl'), parseBrokerUrl),
  gatewayAmqpUrl: accountSetting('gateway'),
  usersAmqpUrl: accountSetting('users'),
  notificationsAmqpUrl: accountSetting('notifications'),
  publisherAmqpUrl: optionalUrl(
    'PUBLISHER_AMQP_URL',
    ['amqp:', 'amqps:'],
    meaningOf(AccountsConfig, 'publisher'),
    parseBrokerUrl,
  ),
  managementUrl: optionalUrl(
    'RABBITMQ_MANAGEMENT_URL',
    ['http:', 'https:'],
    meaningOf(AccountsConfig, 'managementUrl'),
    parseManagementUrl,
  ),
  ...brokerTlsSettings,
  ...publisherSettings,
  databaseUrl: optionalDatabaseUrl('DATABASE_URL', 'PostgreSQL with the full-rights account, for migrations.'),
  usersDatabaseUrl: roleOf('users'),
  notificationsDatabaseUrl: roleOf('notifications'),
  ...databaseTlsSettings,
}) {}
