import { databaseUrl, optionalDatabaseUrl } from '@app/runtime/settings/database-url';
import { Settings } from '@app/runtime/settings/settings';
import { databaseTlsSettings } from '@app/runtime/settings/tls-settings';

/** Configuration of the tool that copies and removes tenants. */
export class TenantsConfig extends Settings({
  databaseUrl: databaseUrl('DATABASE_URL', 'PostgreSQL with the full-rights account, for migrations.'),
  targetUrl: optionalDatabaseUrl(
    'TARGET_DATABASE_URL',
    'The same of another installation, to which `npm run tenants -- copy` copies. It uses the `DATABASE_*_FILE` of the first one.',
  ),
  ...databaseTlsSettings,
}) {}
