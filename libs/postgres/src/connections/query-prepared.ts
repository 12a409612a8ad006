import { setImmediate as immediate } from 'node:timers/promises';
import type { Span } from '@opentelemetry/api';
import type { PoolClient, QueryResultRow } from 'pg';
import type { DataSource } from 'typeorm';
import { inSpan } from '@app/tracing/tracing';
import { isDatabaseAway } from '../errors';
import { STATEMENT_TIMEOUT_MS } from './statement-timeout';
import type { WritableClient } from './writable-client';

/** Timeout near the deadline, in milliseconds. A statement that starts at the deadline ends within 1 s, even if clocks differ by 0.5 s. */
const HURRIED_TIMEOUT_MS = 400;

/** A statement that each connection prepares once: planning a statement with a dozen parts takes longer than running it. */
export interface PreparedStatement {
  /** At most 63 bytes. A name must always have the same text. */
  name: string;
  text: string;
}

/**
 * Runs one prepared statement. With a `deadline`, its effect becomes visible at most a second after the deadline, or never. So it is one
 * autocommitted statement without a transaction: a process that is stopped before COMMIT could commit late.
 *
 * @param deadline epoch milliseconds; undefined when no caller waits
 * @param span parent of the span of the statement. Default: the active span
 * @throws the driver's error
 */
export async function queryPrepared<Row extends QueryResultRow>(
  dataSource: DataSource,
  statement: PreparedStatement,
  values: unknown[],
  deadline?: number,
  span?: Span,
): Promise<Row[]> {
  const hurried = deadline !== undefined && deadline - Date.now() < STATEMENT_TIMEOUT_MS;
  const runner = dataSource.createQueryRunner();
  try {
    // TypeORM's query() cannot name a prepared statement.
    const client = (await runner.connect()) as PoolClient;
    if (hurried) await client.query(`SET statement_timeout = ${HURRIED_TIMEOUT_MS}`);
    try {
      const query = () => client.query<Row>({ values, ...statement });
      return (await (span ? inSpan(span, query) : query())).rows;
    } finally {
      // A lost connection has released the runner.
      if (hurried && !runner.isReleased) await reset(client);
    }
  } finally {
    await runner.release();
  }
}

/** Its failure must not hide the outcome of the statement: the caller would take a timeout for that of the statement, which is committed. */
async function reset(client: PoolClient): Promise<void> {
  try {
    await client.query('RESET statement_timeout');
  } catch (error) {
    // Otherwise the connection is lost already.
    if (isDatabaseAway(error)) return;
    (client as PoolClient & WritableClient).cutOff(new Error('Connection terminated: its statement timeout cannot be restored'));
    // The pool learns of it before it gets the connection back.
    await immediate();
  }
}
