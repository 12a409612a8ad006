import { Logger } from '@nestjs/common';
import type { PoolClient, QueryConfig } from 'pg';
import type { DataSource } from 'typeorm';
import { reasonOf } from '../errors';

/**
 * Opens every connection of the pool, one after the other, and runs the statements on each. Otherwise the first burst of calls would do it for all
 * of them at once, and everything else on the machine would wait. Where the server has no room for them, they are opened when they are needed.
 *
 * @param statements prepared ones that do nothing with their values. Each connection makes its plans, and reads the catalogs for them
 * @param stopping ends it early
 */
export async function openPool(dataSource: DataSource, statements: readonly QueryConfig[], stopping: AbortSignal): Promise<void> {
  const { poolSize = 0 } = dataSource.options as { poolSize?: number };
  const runners = Array.from({ length: poolSize }, () => dataSource.createQueryRunner());
  try {
    for (const runner of runners) {
      if (stopping.aborted) break;
      const client = (await runner.connect()) as PoolClient;
      for (const statement of statements) await client.query(statement);
    }
  } catch (error) {
    new Logger('Postgres').warn(`not every connection is open: ${reasonOf(error)}`);
  } finally {
    await Promise.all(runners.map((runner) => runner.release()));
  }
}
