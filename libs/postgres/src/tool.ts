import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { ConfigError } from '@app/runtime/settings/settings';
import { databaseTlsFiles } from '@app/runtime/settings/tls-settings';
import { migrationObstacle } from './connect';
import { createDataSource, type DataSourceSettings } from './connections/data-source';
import { isDatabaseAway, isTimeout, READ_ONLY, reasonOf, sqlState } from './errors';

/** The schema does not match the tool: migrations have not run. */
class SchemaObstacle extends Error {}

/** The connection ended during the work, so that the outcome of the last statement is unknown. */
class LostInWork extends Error {}

/** The schema, and the configuration of the tool. */
type ToolSettings = Omit<DataSourceSettings, 'url' | 'tlsFiles' | 'poolSize'> & {
  config: { readonly databaseUrl: string } & Parameters<typeof databaseTlsFiles>[0];
};

/**
 * Opens the database for a command line tool, with one connection, and closes it after the work.
 *
 * @throws SchemaObstacle, or another error for {@link databaseProblem}
 */
export async function onDatabase<T>(
  { config, ...settings }: ToolSettings,
  work: (dataSource: DataSource) => Promise<T>,
): Promise<T> {
  // Libraries log why they have lost a connection, and stdout belongs to the result.
  Logger.overrideLogger(false);
  const dataSource = createDataSource({ ...settings, url: config.databaseUrl, tlsFiles: databaseTlsFiles(config), poolSize: 1 });
  try {
    await dataSource.initialize();
    const obstacle = await migrationObstacle(dataSource);
    if (obstacle) throw new SchemaObstacle(obstacle);
    return await work(dataSource).catch((error: unknown) => {
      throw errorInWork(error);
    });
  } finally {
    if (dataSource.isInitialized) await dataSource.destroy();
  }
}

/** The error of work on a database, of which {@link databaseProblem} does not say that it was never begun. */
export const errorInWork = (error: unknown): unknown =>
  isDatabaseAway(error) && sqlState(error) !== READ_ONLY ? new LostInWork(reasonOf(error), { cause: error }) : error;

/** Printable text for a wrong configuration, or an error of the driver. */
export function databaseProblem(error: unknown): string {
  if (error instanceof SchemaObstacle || error instanceof ConfigError) return error.message;
  if (error instanceof LostInWork)
    return `The database was lost (${error.message}). It is not known whether the last change was made.`;
  if (isTimeout(error))
    return 'A statement took too long, perhaps because of a lock, and has changed nothing. Run npm run doctor, and try again.';
  return `The database cannot be used (${reasonOf(error)}).`;
}
