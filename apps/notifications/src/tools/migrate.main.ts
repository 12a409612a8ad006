import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { migrateAndReport } from '@app/postgres/migrate-main';
import { configOrExit } from '@app/runtime/run-service';
import { databaseTlsFiles } from '@app/runtime/tls-settings';
import { notificationsMigrationConfig } from '../config';
import { DATABASE } from '../db/schema';

const config = configOrExit(notificationsMigrationConfig);
/** Set-up waits for it before its next step. */
export const finished = migrateAndReport(DATABASE, { ...config, tlsFiles: databaseTlsFiles(config) });
