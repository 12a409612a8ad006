import type { DataSource } from 'typeorm';
import { STATEMENT_TIMEOUT_MS } from './data-source';

/** Leaves a statement that starts at the deadline finished well within the second after it, clocks half a second apart included. */
const HURRIED_TIMEOUT_MS = 400;

/**
 * Runs one statement of which nothing may become visible later than a second after `deadline`. One autocommitted statement and no
 * transaction: a process that is stopped between two of them could commit late.
 *
 * @param deadline epoch milliseconds; undefined: nobody waits
 */
export async function queryBefore<Row>(
  dataSource: DataSource,
  deadline: number | undefined,
  sql: string,
  parameters: unknown[],
): Promise<Row[]> {
  if (deadline === undefined || deadline - Date.now() >= STATEMENT_TIMEOUT_MS) return dataSource.query<Row[]>(sql, parameters);
  const runner = dataSource.createQueryRunner();
  try {
    await runner.query(`SET statement_timeout = ${HURRIED_TIMEOUT_MS}`);
    try {
      return (await runner.query(sql, parameters)) as Row[];
    } finally {
      // A lost connection has released the runner: its complaint would hide the reason.
      if (!runner.isReleased) await runner.query('RESET statement_timeout');
    }
  } finally {
    await runner.release();
  }
}
