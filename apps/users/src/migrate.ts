import 'reflect-metadata';
import { createDataSource } from '@app/postgres/data-source';
import { migrateAndReport } from '@app/postgres/migrate-main';
import { configOrExit } from '@app/runtime/run-service';
import { usersMigrationConfig } from './config';
import { createDemoCredentials } from './db/demo-credentials';
import { ENTITIES, MIGRATIONS, SCHEMA } from './db/schema';

async function main(): Promise<void> {
  const config = configOrExit(usersMigrationConfig);
  const migrated = await migrateAndReport(SCHEMA, MIGRATIONS, config);
  if (!migrated || !config.demoCredentials) return;
  const { adminUrl: url, caFile } = config;
  const settings = {
    name: 'users-migrate',
    url,
    caFile,
    schema: SCHEMA,
    entities: ENTITIES,
    migrations: MIGRATIONS,
    poolSize: 1,
  };
  const dataSource = await createDataSource(settings).initialize();
  await createDemoCredentials(dataSource);
  await dataSource.destroy();
}

main().catch((error: unknown) => {
  console.error(`schema ${SCHEMA}: the demo credentials were not created: ${(error as Error).message}`);
  process.exitCode = 1;
});
