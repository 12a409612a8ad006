import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase } from 'pg';
import { tryToLock, unlock } from '@app/postgres/migrations/schema-lock';
import { soFar } from '@app/runtime/so-far';
import { batchesOf } from './batches-of';
import type { Rows } from './copy-tenant';
import { ofEach, SCHEMAS, TENANT_TABLES, type Schema, type TenantTable } from './tables';
import { requireQuiet, TenantObstacle } from './tenant-database';

/** A short transaction each, because other tenants go on. */
const ROWS_AT_ONCE = 5000;
/** A statement of a service takes 2 s at most, and a transaction that stands still 5 s. A backup takes hours. */
const LATE_MS = 10_000;
const LOOK_MS = 100;

/**
 * Indexes that no other work needs, so that they exist during the removal only. PostgreSQL looks for the rows that refer to each deleted organization or
 * folder. Without them it would read all users for each organization, and all documents of the organization for each folder.
 */
const INDEXES = { users: '(organization)', documents: '(organization, folder_id)' };

/**
 * Deletes a tenant with everything of it. The API key goes last, so that a removal that was interrupted can be started again. Events that were on
 * their way to notifications come later, and another removal takes their rows.
 *
 * @param client full rights on the database
 * @throws TenantObstacle when the key is enabled, something is unfinished, or another removal runs
 */
export async function removeTenant(client: ClientBase, apiKey: string, progress: (line: string) => void): Promise<Rows> {
  await requireAlone(client);
  // A removal that was interrupted, perhaps that of another key, leaves them, and perhaps not valid.
  const drop = () => besideNoSetUp(client, progress, () => dropIndexes(client));
  await drop();
  await requireQuiet(client, apiKey, true);
  progress('indexes of the users and the documents of all tenants, for the time of the removal');
  try {
    await besideNoSetUp(client, progress, () => makeIndexes(client));
    // The indexes have waited for transactions that may take hours, and the tenant may be in use again.
    await requireQuiet(client, apiKey, true);
    const rows = await emptyTables(client, apiKey, progress);
    await drop();
    return rows;
  } catch (error) {
    // Their own error would only say that the connection is lost.
    await drop().catch(() => undefined);
    throw error;
  }
}

/**
 * Keeps other removals out until the end of the session. Two indexes of a table that are built at once wait for each other, and PostgreSQL cancels one
 * of them. Nobody waits for the lock: the index would wait for the statement that waits.
 */
async function requireAlone(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ alone: boolean }>(`SELECT pg_try_advisory_lock(hashtext('remove a tenant')) AS alone`);
  if (!rows[0]?.alone)
    throw new TenantObstacle('Another removal runs, in a session "tenants" of the database. Start this one after its end.');
}

/** A migration may build or drop an index of the same table. Set-up has no need to wait for the rest of the removal, which may take hours. */
async function besideNoSetUp(client: ClientBase, progress: (line: string) => void, work: () => Promise<void>): Promise<void> {
  for (let said = false; !(await tryToLock(client, 'users')); said = true) {
    if (!said) progress('waiting, because set-up works on the schema users');
    await sleep(LOOK_MS);
  }
  try {
    await work();
  } finally {
    // A session that is lost has no lock any more.
    await unlock(client, 'users').catch(() => undefined);
  }
}

async function makeIndexes(client: ClientBase): Promise<void> {
  for (const [table, columns] of Object.entries(INDEXES))
    await client.query(`CREATE INDEX CONCURRENTLY ${table}_of_removal ON users.${table} ${columns}`);
}

async function dropIndexes(client: ClientBase): Promise<void> {
  for (const table of Object.keys(INDEXES)) await client.query(`DROP INDEX CONCURRENTLY IF EXISTS users.${table}_of_removal`);
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
  { name: table, by }: TenantTable,
  say: (deleted: number) => void,
): Promise<number> {
  const name = `${schema}.${table}`;
  // Another row may have the place of one that is gone, so that its owner is looked at again.
  const [mine, owner] =
    by === 'organization'
      ? [
          `${schema}.organizations o ${ofEach(`SELECT t.ctid FROM ${name} t WHERE t.organization = o.id`)} WHERE o.api_key = $1`,
          `(SELECT o.api_key FROM ${schema}.organizations o WHERE o.id = t.organization)`,
        ]
      : [`${name} t WHERE t.${by} = $1`, `t.${by}`];
  const deletion = `DELETE FROM ${name} t WHERE t.ctid = ANY ($2::tid[]) AND ${owner} = $1`;
  let deleted = 0;
  // Again after an update or a VACUUM FULL has moved a row meanwhile.
  for (let isWhole = false; !isWhole;) {
    isWhole = true;
    // All places at once. A search in each step would pass what the steps before it have deleted: that stays in an index while older transactions run.
    for await (const rows of batchesOf<{ ctid: string }>(
      client,
      `SELECT t.ctid FROM ${mine}`,
      apiKey,
      ROWS_AT_ONCE,
      'WITH HOLD',
    )) {
      const { rowCount } = await client.query(deletion, [apiKey, rows.map(({ ctid }) => ctid)]);
      isWhole &&= rowCount === rows.length;
      say((deleted += rowCount ?? 0));
    }
  }
  return deleted;
}
