import {
  brokerSettings,
  databaseSettings,
  prefetchBelowPool,
  processSettings,
  publisherSettings,
} from '@app/runtime/settings/common-settings';
import { databaseUrl, optionalDatabaseUrl } from '@app/runtime/settings/database-url';
import { flag, Settings } from '@app/runtime/settings/settings';
import { databaseTlsSettings } from '@app/runtime/settings/tls-settings';

/** Configuration of the users service. */
export class UsersConfig extends Settings({
  ...processSettings,
  ...brokerSettings('users'),
  ...publisherSettings,
  ...databaseSettings('users'),
  commandPrefetch: prefetchBelowPool(
    'USERS_COMMAND_PREFETCH',
    8,
    2,
    'Commands that one process handles at a time. Two below DATABASE_POOL_SIZE, so that credentials can be looked up meanwhile. Less by itself with a smaller pool.',
  ),
  queryPrefetch: prefetchBelowPool(
    'USERS_QUERY_PREFETCH',
    7,
    3,
    'Queries that one process handles at a time. Three below DATABASE_POOL_SIZE, so that they take turns by tenant instead of waiting for a connection. Less by itself with a smaller pool.',
  ),
}) {}

/** Configuration of the one-shot migration of schema `users`. */
export class UsersMigrationConfig extends Settings({
  adminUrl: databaseUrl('DATABASE_URL', 'PostgreSQL with the full-rights account, for migrations.'),
  serviceUrl: optionalDatabaseUrl('USERS_DATABASE_URL', 'Its role is created, with rights on schema `users` only.'),
  ...databaseTlsSettings,
  demoCredentials: flag('DEMO_CREDENTIALS', false, 'Creates `demo-key` with `demo-token`. Never in production.'),
}) {}

/** Configuration of the key command line tool. */
export class KeysConfig extends Settings({ ...databaseSettings('users') }) {}

/** Configuration of the tool that publishes events again. */
export class RepublishConfig extends Settings({ ...databaseSettings('users') }) {}
