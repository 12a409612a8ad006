import { readFileSync } from 'node:fs';
import { Logger } from '@nestjs/common';
import { DataSource, type EntityTarget, type MigrationInterface, type ObjectLiteral } from 'typeorm';
import { ImpatientClient } from './impatient-client';
import { STATEMENT_TIMEOUT_MS } from './statement-timeout';

export interface DataSourceSettings {
  /** Name of the service, shown in pg_stat_activity. */
  name: string;
  url: string;
  caFile?: string;
  /** The one schema that this service owns. */
  schema: string;
  entities: (EntityTarget<ObjectLiteral> & { new (): unknown })[];
  migrations: (new () => MigrationInterface)[];
  poolSize: number;
  /**
   * Plans are made without values, and so once for a connection: for statements that each have an index to go by. Left to itself, PostgreSQL
   * takes an unknown LIMIT for a tenth of all rows, finds that dear, and plans anew for each call. A table is never read without an index
   * then: the plan may be older than most of its rows.
   */
  genericPlans?: boolean;
}

/** See {@link DataSourceSettings.genericPlans}. */
export const GENERIC_PLANS = { plan_cache_mode: 'force_generic_plan', enable_seqscan: 'off' };

const CONNECT_TIMEOUT_MS = 2000;

/** A data source that is not connected yet: {@link connectWhenReady} does that, so that a process starts before its database. */
export function createDataSource(settings: DataSourceSettings): DataSource {
  const logger = new Logger('Postgres');
  const parameters = { search_path: settings.schema, ...(settings.genericPlans && GENERIC_PLANS) };
  return new DataSource({
    type: 'postgres',
    applicationName: settings.name,
    url: settings.url,
    schema: settings.schema,
    ...(settings.caFile && { ssl: { ca: readFileSync(settings.caFile, 'utf8') } }),
    entities: settings.entities,
    migrations: settings.migrations,
    migrationsTableName: 'migrations',
    poolSize: settings.poolSize,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    // Without a listener an idle connection that the server closes takes the process down.
    poolErrorHandler: (error: Error) => logger.warn(`an idle connection was lost: ${error.message}`),
    extra: {
      Client: ImpatientClient,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      idle_in_transaction_session_timeout: 5000,
      keepAlive: true,
      options: Object.entries(parameters)
        .map(([name, value]) => `-c ${name}=${value}`)
        .join(' '),
    },
  });
}
