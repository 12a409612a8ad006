import 'reflect-metadata';
import { migrateAndReport } from '@app/postgres/migrate-main';
import { configOrExit } from '@app/runtime/run-service';
import { notificationsMigrationConfig } from './config';
import { MIGRATIONS, SCHEMA } from './db/schema';

void migrateAndReport(SCHEMA, MIGRATIONS, configOrExit(notificationsMigrationConfig));
