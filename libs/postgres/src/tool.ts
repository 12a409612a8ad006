import type { DataSource } from 'typeorm';
import { ConfigError } from '@app/runtime/settings/settings';
import { migrationObstacle } from './connect';
import { reasonOf } from './errors';

/** The schema does not match the tool: migrations have not run. */
export class SchemaObstacle extends Error {}

/**
 * Opens the database for a command line tool, and closes it after the work.
 *
 * @throws SchemaObstacle with a message for the operator
 */
export async function onDatabase<T>(dataSource: DataSource, work: () => Promise<T>): Promise<T> {
  try {
    await dataSource.initialize();
    const obstacle = await migrationObstacle(dataSource);
    if (obstacle) throw new SchemaObstacle(obstacle);
    return await work();
  } finally {
    if (dataSource.isInitialized) await dataSource.destroy();
  }
}

/** Printable text for a wrong configuration, or an error of the driver. */
export function databaseProblem(error: unknown): string {
  if (error instanceof SchemaObstacle || error instanceof ConfigError) return error.message;
  return `The database cannot be used (${reasonOf(error)}).`;
}
