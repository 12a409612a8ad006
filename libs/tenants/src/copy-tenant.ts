import type { ClientBase } from 'pg';
import { soFar } from '@app/runtime/so-far';
import { batchesOf } from './batches-of';
import { ofEach, SCHEMAS, TENANT_TABLES, type Schema, type TenantTable } from './tables';
import { TenantObstacle, migrationsOf, requireQuiet } from './tenant-database';

/** A notification has up to a megabyte. */
const ROWS_AT_ONCE = 200;
/** Room for what other tenants draw meanwhile. */
const VERSIONS_AHEAD = 1_000_000;

/** Rows by `schema.table`. */
export type Rows = Record<string, number>;

/**
 * Copies a tenant from one installation to another one, whose other tenants go on. The key arrives disabled, with its tokens, so that its callers
 * need no new ones. Everything is copied in one transaction, or nothing. Reads one snapshot of the source and changes nothing there.
 *
 * @param from full rights on the database of the source
 * @param to full rights on that of the target
 * @throws TenantObstacle when the key is enabled, something is unfinished, or the target has the key already or another version
 */
export async function copyTenant(
  from: ClientBase,
  to: ClientBase,
  apiKey: string,
  progress: (line: string) => void,
): Promise<Rows> {
  await from.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
  await to.query('BEGIN');
  try {
    await requireQuiet(from, apiKey);
    await requireRoom(from, to, apiKey);
    await raiseVersions(from, to);
    const rows: Rows = {};
    const say = soFar(progress);
    for (const schema of SCHEMAS)
      for (const table of TENANT_TABLES[schema]) {
        if (table.stays) continue;
        const name = `${schema}.${table.name}`;
        rows[name] = await copyTable(from, to, apiKey, schema, table, (copied) => say(name, copied));
        progress(`${name}: ${rows[name]}`);
      }
    await to.query('COMMIT');
    return rows;
  } catch (error) {
    await to.query('ROLLBACK').catch(() => undefined);
    throw error;
  } finally {
    await from.query('ROLLBACK').catch(() => undefined);
  }
}

async function requireRoom(from: ClientBase, to: ClientBase, apiKey: string): Promise<void> {
  if ((await migrationsOf(from)) !== (await migrationsOf(to)))
    throw new TenantObstacle('The two databases have not run the same migrations. Bring both to one version with npm run setup.');
  const { rowCount } = await to.query(
    `SELECT FROM users.api_keys WHERE key = $1 UNION ALL SELECT FROM notifications.organizations WHERE api_key = $1
     UNION ALL SELECT FROM notifications.erasures WHERE api_key = $1 LIMIT 1`,
    [apiKey],
  );
  if (rowCount) throw new TenantObstacle(`The target has rows of API key ${apiKey} already.`);
}

/**
 * A later change must have a greater version than every copied row, or it counts as old. Drawn versions are never given back, so this is right
 * whether the transaction commits or not.
 */
async function raiseVersions(from: ClientBase, to: ClientBase): Promise<void> {
  const { rows } = await from.query<{ last: string }>('SELECT last_value AS last FROM users.versions');
  await to.query(
    `SELECT setval('users.versions', $1::bigint + ${VERSIONS_AHEAD}) FROM users.versions WHERE last_value <= $1::bigint`,
    [rows[0]?.last],
  );
}

async function copyTable(
  from: ClientBase,
  to: ClientBase,
  apiKey: string,
  schema: Schema,
  table: TenantTable,
  say: (copied: number) => void,
): Promise<number> {
  const name = `${schema}.${table.name}`;
  const columns = await columnsOf(from, name);
  // The number of the organization is the only value that differs. In a join the planner may read all organizations of the tenant for each step.
  const number = `(SELECT o.id FROM ${schema}.organizations o WHERE o.api_key = $3 AND o.organization_id = given.organization)`;
  const values = columns.map((column) => (table.by === 'organization' && column === 'organization' ? number : `r.${column}`));
  const insert = `
    INSERT INTO ${name} (${columns.join(', ')})
    SELECT ${values.join(', ')} FROM unnest($1::text[], $2::text[]) AS given(organization, row)
    CROSS JOIN LATERAL json_populate_record(NULL::${name}, given.row::json) r`;
  let copied = 0;
  for await (const rows of batchesOf<CopiedRow>(from, rowsOf(name, schema, table), apiKey, ROWS_AT_ONCE)) {
    const given = [rows.map((one) => one.organization), rows.map(({ row }) => row)];
    await to.query(insert, table.by === 'organization' ? [...given, apiKey] : given);
    copied += rows.length;
    say(copied);
  }
  return copied;
}

interface CopiedRow {
  organization: string | null;
  row: string;
}

/** The rows of the tenant, each with the id of its organization. */
function rowsOf(name: string, schema: Schema, { by, copied = 'true', unindexed }: TenantTable): string {
  if (by !== 'organization')
    return `SELECT NULL AS organization, to_json(t)::text AS row FROM ${name} t WHERE t.${by} = $1 AND ${copied}`;
  const rows = unindexed
    ? // Without the sum PostgreSQL may read a whole index once for each organization.
      `JOIN ${name} t ON t.organization + 0 = o.id AND ${copied}`
    : ofEach(`SELECT * FROM ${name} t WHERE t.organization = o.id AND ${copied}`);
  return `SELECT o.organization_id AS organization, to_json(t)::text AS row FROM ${schema}.organizations o ${rows} WHERE o.api_key = $1`;
}

/** Without numbers that the target draws. */
async function columnsOf(client: ClientBase, name: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT quote_ident(attname) AS name FROM pg_attribute
     WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attidentity = '' ORDER BY attnum`,
    [name],
  );
  return rows.map(({ name: column }) => column);
}
