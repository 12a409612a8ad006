import type { DataSource } from 'typeorm';
import { migrationObstacle } from './connect';

/** The schema is not what the tool was made for. */
export class SchemaObstacle extends Error {}

/**
 * Opens the database for a command line tool, and closes it when the work is over.
 *
 * @throws SchemaObstacle, with a message for people
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

/** What may be said of an error of the driver: its message may name users and databases, and a refused connection has none. */
export function databaseProblem(error: unknown): string {
  if (error instanceof SchemaObstacle) return error.message;
  const { code, name } = error as { code?: string; name: string };
  return `The database cannot be used (${code ?? name}).`;
}
