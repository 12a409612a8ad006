import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { tlsProblem } from '@app/runtime/tls-files';

const FIRST_DELAY_MS = 200;
const LONGEST_DELAY_MS = 5000;

/**
 * Connects, and waits without limit until the database is reachable and every migration of this build has run. A service that starts on an old
 * schema would fail on each request instead.
 *
 * @returns false when `stopping` was aborted first
 */
export async function connectWhenReady(dataSource: DataSource, stopping: AbortSignal): Promise<boolean> {
  const logger = new Logger('Postgres');
  let told = '';
  for (let delay = FIRST_DELAY_MS; !stopping.aborted; delay = Math.min(delay * 2, LONGEST_DELAY_MS)) {
    const obstacle = await obstacleTo(dataSource);
    if (!obstacle) return true;
    if (obstacle !== told) logger.warn(`waiting: ${obstacle}`);
    told = obstacle;
    await pause(delay * (0.75 + Math.random() / 2), stopping);
  }
  return false;
}

async function obstacleTo(dataSource: DataSource): Promise<string | undefined> {
  try {
    if (!dataSource.isInitialized) await dataSource.initialize();
  } catch (error) {
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
    return missing.length > 0 ? `${missing.length} migrations have not run: run "npm run setup"` : undefined;
  } catch (error) {
    const state = (error as { code?: string }).code;
    if (state === '42P01' || state === '3F000') return 'the schema does not exist yet: run "npm run setup"';
    if (state === '42501') return 'this role may not read its schema: run "npm run setup"';
    return `the database is unreachable (${reasonOf(error)})`;
  }
}

/** Readiness of the connection. @returns undefined, or a short reason */
export async function databaseObstacle(dataSource: DataSource): Promise<string | undefined> {
  if (!dataSource.isInitialized) return 'is not connected';
  try {
    await dataSource.query('SELECT 1');
    return undefined;
  } catch (error) {
    return `is unreachable (${reasonOf(error)})`;
  }
}

/** Only the code or name of most errors, because messages of the driver may contain users and databases. */
export function reasonOf(error: unknown): string {
  const { code, name } = error as { code?: string; name: string };
  if (code?.startsWith('28')) return `${code}: the server refuses the password or the certificate`;
  return tlsProblem(error) ?? code ?? name;
}

function pause(ms: number, stopping: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      stopping.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    stopping.addEventListener('abort', done);
  });
}
