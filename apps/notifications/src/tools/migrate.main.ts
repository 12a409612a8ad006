import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { migrateAndReport } from '@app/postgres/migrations/migrate-main';
import { ToolOutput } from '@app/runtime/tool-output';
import { databaseTlsFiles } from '@app/runtime/settings/tls-settings';
import { NotificationsMigrationConfig } from '../config';
import { DATABASE } from '../db/schema';

const output = new ToolOutput();

async function main() {
  const config = new NotificationsMigrationConfig();
  return migrateAndReport(DATABASE, { ...config, tlsFiles: databaseTlsFiles(config) }, output);
}

/** Set-up waits for it before its next step. */
export const finished = main().catch((error: unknown) => output.failure('setup', error, (one) => (one as Error).message));
