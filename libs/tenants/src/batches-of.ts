import type { ClientBase, QueryResultRow } from 'pg';

/**
 * The rows of a SELECT, so many at a time. In between, the connection is free for other statements.
 *
 * @param options of the cursor: outside a transaction it needs `WITH HOLD`
 */
export async function* batchesOf<Row extends QueryResultRow>(
  client: ClientBase,
  select: string,
  value: string,
  size: number,
  options = '',
): AsyncGenerator<Row[]> {
  await client.query({ text: `DECLARE batches NO SCROLL CURSOR ${options} FOR ${select}`, values: [value] });
  for (;;) {
    const { rows } = await client.query<Row>(`FETCH ${size} FROM batches`);
    if (rows.length === 0) break;
    yield rows;
  }
  await client.query('CLOSE batches');
}
