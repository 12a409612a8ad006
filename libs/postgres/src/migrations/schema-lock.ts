import type { ClientBase } from 'pg';

const nameOf = (schema: string) => `migrate:${schema}`;

/**
 * Takes the lock that set-up has while it works on a schema, until {@link unlock} or the end of the session. Two indexes of a table that are built at
 * once wait for each other, and PostgreSQL cancels one of them.
 *
 * @returns whether it was free
 */
export async function tryToLock(client: ClientBase, schema: string): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock(hashtext($1)) AS locked', [
    nameOf(schema),
  ]);
  return rows[0]?.locked ?? false;
}

export async function unlock(client: ClientBase, schema: string): Promise<void> {
  await client.query('SELECT pg_advisory_unlock(hashtext($1))', [nameOf(schema)]);
}
