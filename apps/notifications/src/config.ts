import {
  brokerSettings,
  callsSettings,
  databaseSettings,
  prefetchBelowPool,
  processSettings,
  publisherSettings,
} from '@app/runtime/settings/common-settings';
import { databaseUrl, optionalDatabaseUrl } from '@app/runtime/settings/database-url';
import { choices, integer, Settings } from '@app/runtime/settings/settings';
import { databaseTlsSettings } from '@app/runtime/settings/tls-settings';

/** Configuration of the notifications service. */
export class NotificationsConfig extends Settings({
  ...processSettings,
  ...brokerSettings('notifications'),
  ...callsSettings,
  ...publisherSettings,
  ...databaseSettings('notifications'),
  queues: choices(
    'NOTIFICATIONS_QUEUES',
    ['commands', 'queries', 'events'] as const,
    'Queues that this replica consumes. All replicas together must consume all three: events that are not consumed block the users service in the end.',
  ),
  commandPrefetch: integer(
    'NOTIFICATIONS_COMMAND_PREFETCH',
    256,
    { min: 1, max: 2000 },
    'Commands that one process handles at a time; up to 128 share a commit.',
  ),
  queryPrefetch: prefetchBelowPool(
    'NOTIFICATIONS_QUERY_PREFETCH',
    7,
    3,
    'Queries that one process handles at a time. Three below DATABASE_POOL_SIZE, so that slow reads leave connections to the writer. Less by itself with a smaller pool.',
  ),
  retentionDays: integer(
    'RETENTION_DAYS',
    0,
    { min: 0, max: 36_500 },
    'Notifications older than this are deleted within ten minutes. 0 keeps all notifications.',
  ),
}) {}

/** Configuration of the one-shot migration of schema `notifications`. */
export class NotificationsMigrationConfig extends Settings({
  adminUrl: databaseUrl('DATABASE_URL', 'PostgreSQL with the full-rights account, for migrations.'),
  serviceUrl: optionalDatabaseUrl(
    'NOTIFICATIONS_DATABASE_URL',
    'Its role is created, with rights on schema `notifications` only.',
  ),
  ...databaseTlsSettings,
}) {}

/** Configuration of the tool that marks the copy of memberships as not trusted. */
export class CopyConfig extends Settings({ ...databaseSettings('notifications') }) {}
