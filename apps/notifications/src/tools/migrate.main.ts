import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { migrateAndReport } from '@app/postgres/migrate-main';
import { configOrExit } from '@app/runtime/run-service';
import { notificationsMigrationConfig } from '../config';
import { DATABASE } from '../db/schema';

void migrateAndReport(DATABASE.schema, DATABASE.migrations, configOrExit(notificationsMigrationConfig));
