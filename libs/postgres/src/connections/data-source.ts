import { Logger } from '@nestjs/common';
import pg from 'pg';
import { DataSource, type MigrationInterface } from 'typeorm';
import type { TlsFiles } from '@app/runtime/settings/tls-files';
import { DatabaseServers } from './database-servers';
import { FailoverPool } from './failover-pool';
import { STATEMENT_TIMEOUT_MS } from './statement-timeout';
import { TracedClient } from './traced-client';

export interface DataSourceSettings {
  /** Name of the service, shown in pg_stat_activity. */
  name: string;
  /** Connection string with one or several servers, of which the writable one is used. */
  url: string;
  tlsFiles?: TlsFiles;
  /** The schema that this service owns. */
  schema: string;
  migrations: (new () => MigrationInterface)[];
  poolSize: number;
  /**
   * Uses generic plans: a statement is planned once for each connection, without its values. Every statement must have a matching index.
   * By default PostgreSQL assumes that an unknown LIMIT returns a tenth of all rows, finds the generic plan expensive, and plans each call again.
   * Sequential scans are off, because the plan may be older than most rows of the table.
   */
  genericPlans?: boolean;
}

/** See {@link DataSourceSettings.genericPlans}. */
export const GENERIC_PLANS = { plan_cache_mode: 'force_generic_plan', enable_seqscan: 'off' };

/**
 * Statements are not compiled: that takes seconds, each time one runs, and each takes milliseconds. PostgreSQL before 18 finds a plan that cannot do
 * without a sequential scan so expensive, because of `enable_seqscan`, that it would compile all of it.
 */
export const NOT_COMPILED = { jit: 'off' };

/** The code relies on these, whatever a role or a database has by default: the driver reads no other format of times. */
const OWN_DEFAULTS = { DateStyle: 'ISO', default_transaction_isolation: 'read\\ committed', idle_session_timeout: 0 };

const CONNECT_TIMEOUT_MS = 2000;

/** Idle time before TCP asks whether the other side is there. It finds lost connections, and keeps them in the tables of firewalls. */
const KEEP_ALIVE_MS = 10_000;
export const KEPT_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: KEEP_ALIVE_MS };

/**
 * The server asks, too, in seconds. It notices a lost machine only so, by itself after two hours, and while it sends an answer after a quarter of an
 * hour (milliseconds). Until then the sessions of that machine count for `max_connections`, and keep what they have locked.
 */
export const MISSED_WHEN_LOST = {
  ...{ tcp_keepalives_idle: 10, tcp_keepalives_interval: 10, tcp_keepalives_count: 3 },
  tcp_user_timeout: 40_000,
};

/** Creates a data source without connecting: {@link connectWhenReady} connects, so a process can start before its database. */
export function createDataSource(settings: DataSourceSettings): DataSource {
  const logger = new Logger('Postgres');
  const servers = new DatabaseServers(settings.url);
  const generic = settings.genericPlans && GENERIC_PLANS;
  const parameters = { search_path: settings.schema, ...MISSED_WHEN_LOST, ...OWN_DEFAULTS, ...NOT_COMPILED, ...generic };
  return new DataSource({
    type: 'postgres',
    applicationName: settings.name,
    driver: { ...pg, Pool: FailoverPool },
    url: servers.current,
    schema: settings.schema,
    migrations: settings.migrations,
    migrationsTableName: 'migrations',
    poolSize: settings.poolSize,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    // Without this handler the process ends when the server closes an idle connection.
    poolErrorHandler: (error: Error) => logger.warn(`an idle connection was lost: ${error.message}`),
    extra: {
      Client: TracedClient,
      schema: settings.schema,
      tlsFiles: settings.tlsFiles,
      servers,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      idle_in_transaction_session_timeout: 5000,
      ...KEPT_ALIVE,
      // An idle connection stays open. To open one costs the server as much as some fifteen inserts, and a burst would open all of them at once.
      idleTimeoutMillis: 0,
      options: optionsOf(parameters),
    },
  });
}

/** Settings of a connection, as the server takes them at its beginning. */
export const optionsOf = (parameters: Record<string, string | number>): string =>
  Object.entries(parameters)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ');
