import type { PoolClient, QueryResultRow } from 'pg';
import type { DataSource } from 'typeorm';
import { STATEMENT_TIMEOUT_MS } from './statement-timeout';

/** Leaves a statement that starts at the deadline finished well within the second after it, clocks half a second apart included. */
const HURRIED_TIMEOUT_MS = 400;

/** A statement that each connection prepares once: planning one of a dozen parts takes longer than running it. */
export interface PreparedStatement {
  /** At most 63 bytes; one name, one text. */
  name: string;
  text: string;
}

/**
 * Runs one statement that its connection has prepared. With a `deadline` nothing of it becomes visible later than a second after: one
 * autocommitted statement and no transaction, because a process that is stopped between two of them could commit late.
 *
 * @param deadline epoch milliseconds; undefined: nobody waits
 * @throws the driver's error
 */
export async function queryPrepared<Row extends QueryResultRow>(
  dataSource: DataSource,
  statement: PreparedStatement,
  values: unknown[],
  deadline?: number,
): Promise<Row[]> {
  const hurried = deadline !== undefined && deadline - Date.now() < STATEMENT_TIMEOUT_MS;
  const runner = dataSource.createQueryRunner();
  try {
    // TypeORM's own query() cannot name a statement.
    const client = (await runner.connect()) as PoolClient;
    if (hurried) await client.query(`SET statement_timeout = ${HURRIED_TIMEOUT_MS}`);
    try {
      return (await client.query<Row>({ values, ...statement })).rows;
    } finally {
      // A lost connection has released the runner: its complaint would hide the reason.
      if (hurried && !runner.isReleased) await client.query('RESET statement_timeout');
    }
  } finally {
    await runner.release();
  }
}
