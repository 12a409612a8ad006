import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { QueryConfig } from 'pg';
import type { DataSource } from 'typeorm';
import { counted } from '@app/runtime/counted';
import { waitAfter } from '@app/runtime/wait-after';
import { openPool } from './connections/open-pool';
import { connectionPooler, isDatabaseAway, READ_ONLY, reasonOf, sqlState } from './errors';

/** SQLSTATEs of a statement that names what is not there, or that the role may not use. */
const MISSING = /^(42|3F)/;

/**
 * Connects, and waits without limit until the database is reachable and every migration of this build has run. A service that starts on an old
 * schema would fail on each request instead. Then it opens every connection of the pool.
 *
 * @param statements see {@link openPool}
 * @returns false when `stopping` was aborted first
 * @throws Error when the URL leads to a connection pooler
 */
export async function connectWhenReady(
  dataSource: DataSource,
  stopping: AbortSignal,
  statements: readonly QueryConfig[] = [],
): Promise<boolean> {
  const logger = new Logger('Postgres');
  let logged = '';
  for (let failures = 1; !stopping.aborted; failures++) {
    const obstacle = await obstacleTo(dataSource);
    if (!obstacle) {
      await openPool(dataSource, statements, stopping);
      return true;
    }
    if (obstacle !== logged) logger.warn(`waiting: ${obstacle}`);
    logged = obstacle;
    await sleep(waitAfter(failures), undefined, { signal: stopping }).catch(() => undefined);
  }
  return false;
}

async function obstacleTo(dataSource: DataSource): Promise<string | undefined> {
  try {
    if (!dataSource.isInitialized) await dataSource.initialize();
  } catch (error) {
    const pooler = connectionPooler(error);
    if (pooler) throw new Error(`The server in DATABASE_URL ${pooler.message}.`, { cause: error });
    return `the database is unreachable (${reasonOf(error)})`;
  }
  return migrationObstacle(dataSource);
}

/** Readiness of the schema. @returns undefined, or a reason that names the command to run */
export async function migrationObstacle(dataSource: DataSource): Promise<string | undefined> {
  const known = dataSource.migrations.map((migration) => migration.name ?? migration.constructor.name);
  try {
    const rows: { name: string }[] = await dataSource.query('SELECT name FROM migrations');
    const done = new Set(rows.map((row) => row.name));
    const missing = known.filter((name) => !done.has(name));
    return missing.length > 0
      ? `${counted(missing.length, 'migration has', 'migrations have')} not run: run "npm run setup"`
      : undefined;
  } catch (error) {
    const state = sqlState(error);
    if (state === '42P01' || state === '3F000') return 'the schema does not exist yet: run "npm run setup"';
    if (state === '42501') return 'this role may not read its schema: run "npm run setup"';
    return `the database is unreachable (${reasonOf(error)})`;
  }
}

/**
 * Whether commands have to wait after this error: the database is away, or lacks what set-up makes, as after a restore without its rights or tables.
 * When it lacks nothing, a statement that misses something is a bug.
 */
export const isUnusable = async (dataSource: DataSource, error: unknown): Promise<boolean> =>
  isDatabaseAway(error) || (MISSING.test(sqlState(error)) && (await migrationObstacle(dataSource)) !== undefined);

/** @throws Error while commands have to wait: see {@link isUnusable} */
export async function requireUsable(dataSource: DataSource): Promise<void> {
  const obstacle = await migrationObstacle(dataSource);
  if (obstacle) throw new Error(obstacle);
}

/** Readiness of the connection. @returns undefined, or a short reason */
export async function databaseObstacle(dataSource: DataSource): Promise<string | undefined> {
  if (!dataSource.isInitialized) return 'is not connected';
  try {
    await dataSource.query('SELECT 1');
    return undefined;
  } catch (error) {
    return sqlState(error) === READ_ONLY ? 'accepts no writes' : `is unreachable (${reasonOf(error)})`;
  }
}
