import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { createDataSource } from '@app/postgres/data-source';
import { migrateAndReport } from '@app/postgres/migrate-main';
import { configOrExit } from '@app/runtime/run-service';
import { databaseTlsFiles } from '@app/runtime/tls-settings';
import { usersMigrationConfig } from '../config';
import { createDemoCredentials } from '../db/demo-credentials';
import { DATABASE } from '../db/schema';

async function main(): Promise<void> {
  const config = configOrExit(usersMigrationConfig);
  const tlsFiles = databaseTlsFiles(config);
  const migrated = await migrateAndReport(DATABASE, { ...config, tlsFiles });
  if (!migrated || !config.demoCredentials) return;
  const settings = { name: 'users-migrate', url: config.adminUrl, tlsFiles, ...DATABASE, poolSize: 1 };
  const dataSource = await createDataSource(settings).initialize();
  await createDemoCredentials(dataSource);
  await dataSource.destroy();
}

/** Set-up waits for it before its next step. */
export const finished = main().catch((error: unknown) => {
  console.error(`schema ${DATABASE.schema}: the demo credentials were not created: ${(error as Error).message}`);
  process.exitCode = 1;
});
