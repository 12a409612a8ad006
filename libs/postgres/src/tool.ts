import type { DataSource } from 'typeorm';
import { ConfigError } from '@app/runtime/settings/settings';
import { databaseTlsFiles } from '@app/runtime/settings/tls-settings';
import { migrationObstacle } from './connect';
import { createDataSource, type DataSourceSettings } from './connections/data-source';
import { reasonOf } from './errors';

/** The schema does not match the tool: migrations have not run. */
export class SchemaObstacle extends Error {}

/** The schema, and the configuration of the tool. */
type ToolSettings = Omit<DataSourceSettings, 'url' | 'tlsFiles' | 'poolSize'> & {
  config: { readonly databaseUrl: string } & Parameters<typeof databaseTlsFiles>[0];
};

/**
 * Opens the database for a command line tool, with one connection, and closes it after the work.
 *
 * @throws SchemaObstacle with a message for the operator
 */
export async function onDatabase<T>(
  { config, ...settings }: ToolSettings,
  work: (dataSource: DataSource) => Promise<T>,
): Promise<T> {
  const dataSource = createDataSource({ ...settings, url: config.databaseUrl, tlsFiles: databaseTlsFiles(config), poolSize: 1 });
  try {
    await dataSource.initialize();
    const obstacle = await migrationObstacle(dataSource);
    if (obstacle) throw new SchemaObstacle(obstacle);
    return await work(dataSource);
  } finally {
    if (dataSource.isInitialized) await dataSource.destroy();
  }
}

/** Printable text for a wrong configuration, or an error of the driver. */
export function databaseProblem(error: unknown): string {
  if (error instanceof SchemaObstacle || error instanceof ConfigError) return error.message;
  return `The database cannot be used (${reasonOf(error)}).`;
}
