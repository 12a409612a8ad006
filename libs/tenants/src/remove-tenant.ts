import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase } from 'pg';
import { soFar } from '@app/runtime/so-far';
import type { Rows } from './copy-tenant';
import { SCHEMAS, TENANT_TABLES, type Schema, type TenantTable } from './tables';
import { requireQuiet } from './tenant-database';

/** A short transaction each, because other tenants go on. */
const ROWS_AT_ONCE = 5000;
/** A statement of a service takes 2 s at most, and a transaction that stands still 5 s. A backup takes hours. */
const LATE_MS = 10_000;
const LOOK_MS = 100;

/**
 * Deletes a tenant with everything of it. The API key goes last, so that a removal that was interrupted can be started again. Events that were on
 * their way to notifications come later, and another removal takes their rows.
 *
 * No other work looks for the users of an organization, so that an index for this exists during the removal only. Without it PostgreSQL would
 * read all users for each organization that is deleted, because of the foreign key. Each removal has its own, so that several can run at once.
 *
 * @param client full rights on the database
 * @throws TenantObstacle when the key is enabled, or something is unfinished
 */
export async function removeTenant(client: ClientBase, apiKey: string, progress: (line: string) => void): Promise<Rows> {
  await requireQuiet(client, apiKey, true);
  const index = `users_of_${createHash('sha256').update(apiKey).digest('hex').slice(0, 16)}`;
  // An interrupted removal leaves it, perhaps not valid.
  const dropIndex = () => client.query(`DROP INDEX CONCURRENTLY IF EXISTS users.${index}`);
  await dropIndex();
  progress('an index of the users of all tenants, for the time of the removal');
  try {
    await client.query(`CREATE INDEX CONCURRENTLY ${index} ON users.users (organization)`);
    // The index has waited for transactions that may take hours, and the tenant may be in use again.
    await requireQuiet(client, apiKey, true);
    // The planner takes an organization for a large part of each table (`n_distinct` in tables.sql), and would read whole tables.
    await client.query('SET enable_seqscan = off');
    return await emptyTables(client, apiKey, progress);
  } finally {
    await dropIndex();
  }
}

async function emptyTables(client: ClientBase, apiKey: string, progress: (line: string) => void): Promise<Rows> {
  const { rows: organizations } = await client.query<{ id: string }>(
    'SELECT id FROM notifications.organizations WHERE api_key = $1',
    [apiKey],
  );
  const rows: Rows = {};
  const say = soFar(progress);
  for (const schema of [...SCHEMAS].reverse())
    for (const table of [...TENANT_TABLES[schema]].reverse()) {
      const name = `${schema}.${table.name}`;
      rows[name] = await emptyTable(client, apiKey, schema, table, (deleted) => say(name, deleted));
      progress(`${name}: ${rows[name]}`);
    }
  await emptyLate(
    client,
    organizations.map(({ id }) => id),
  );
  return rows;
}

/**
 * Deletes what notifications has stored meanwhile for organizations that are gone now, as when it applies an event. Nothing says any more whose these
 * rows are, so that another removal would not find them.
 */
async function emptyLate(client: ClientBase, organizations: readonly string[]): Promise<void> {
  await earlierTransactions(client);
  for (const { name, by } of TENANT_TABLES.notifications)
    if (by === 'organization')
      await client.query(`DELETE FROM notifications.${name} WHERE organization = ANY ($1::bigint[])`, [organizations]);
}

/**
 * Waits for the end of the transactions that run. A session that the account may not see counts as one of them. Exported for its test.
 *
 * @param mostMs longest wait, in milliseconds
 */
export async function earlierTransactions(client: ClientBase, mostMs = LATE_MS): Promise<void> {
  const earlier = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND coalesce(xact_start < $1::timestamptz, query = '<insufficient privilege>') LIMIT 1`;
  const { rows } = await client.query<{ now: string }>('SELECT clock_timestamp()::text AS now');
  for (const since = performance.now(); performance.now() - since < mostMs; await sleep(LOOK_MS))
    if ((await client.query(earlier, [rows[0]?.now])).rowCount === 0) break;
}

async function emptyTable(
  client: ClientBase,
  apiKey: string,
  schema: Schema,
  table: TenantTable,
  say: (deleted: number) => void,
): Promise<number> {
  const name = `${schema}.${table.name}`;
  const mine =
    table.by === 'organization'
      ? `t.organization IN (SELECT id FROM ${schema}.organizations WHERE api_key = $1)`
      : `t.${table.by} = $1`;
  let deleted = 0;
  for (;;) {
    const { rowCount } = await client.query(
      `DELETE FROM ${name} WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${name} t WHERE ${mine} LIMIT ${ROWS_AT_ONCE}))`,
      [apiKey],
    );
    deleted += rowCount ?? 0;
    say(deleted);
    if ((rowCount ?? 0) < ROWS_AT_ONCE) return deleted;
  }
}
