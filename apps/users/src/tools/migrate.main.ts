import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { createDataSource } from '@app/postgres/connections/data-source';
import { migrateAndReport } from '@app/postgres/migrations/migrate-main';
import { ConfigError } from '@app/runtime/settings/settings';
import { databaseTlsFiles } from '@app/runtime/settings/tls-settings';
import { ToolOutput } from '@app/runtime/tool-output';
import { UsersMigrationConfig } from '../config';
import { createDemoCredentials } from '../db/demo-credentials';
import { DATABASE } from '../db/schema';

const output = new ToolOutput();

async function main() {
  const config = new UsersMigrationConfig();
  const tlsFiles = databaseTlsFiles(config);
  const migrated = await migrateAndReport(DATABASE, { ...config, tlsFiles }, output);
  if (!migrated || !config.demoCredentials) return migrated;
  const settings = { name: 'users-migrate', url: config.adminUrl, tlsFiles, ...DATABASE, poolSize: 1 };
  const dataSource = await createDataSource(settings).initialize();
  await createDemoCredentials(dataSource);
  await dataSource.destroy();
  return migrated;
}

/** Set-up waits for it before its next step. */
export const finished = main().catch((error: unknown) => {
  output.failure('setup', error, (one) => {
    const { message } = one as Error;
    return one instanceof ConfigError ? message : `schema ${DATABASE.schema}: the demo credentials were not created: ${message}`;
  });
});
