import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ClientBase } from 'pg';
import { DatabaseServers } from '@app/postgres/connections/database-servers';
import { counted } from '@app/runtime/counted';
import { within } from '@app/runtime/within';
import { reasonOf, sqlState } from '@app/postgres/errors';
import { missingPrivileges } from '@app/postgres/migrations/required-rights';
import { WritableClient } from '@app/postgres/connections/writable-client';
import type { TlsFiles } from '@app/runtime/settings/tls-files';
import { COMMON_TABLES, TENANT_TABLES } from '@app/tenants/tables';
import { NO_ADDRESS, type Findings } from '../finding';

/** A service with a schema, and its neighbour, whose rows it must not see. */
export const SCHEMAS = ['users', 'notifications'] as const;
export type Schema = (typeof SCHEMAS)[number];

const DENIED = '42501';
/** Tables of which the role may delete no rows. */
const UNDELETABLE: Record<Schema, readonly string[]> = { users: [], notifications: ['organizations', 'documents'] };
/** Statements in one line. */
const MOST_STATEMENTS = 5;
/** Longest time of a statement at the server, and longest wait for a lock. The compilation of a statement would take longer than it. */
const LIMITS = `SET statement_timeout = '10s'; SET lock_timeout = '2s'; SET jit = off`;
/** Longest wait for the answer to a statement, in milliseconds: a server that has stopped does not keep its limits. */
const ANSWER_MS = 12_000;
const END_MS = 2000;
/** Most milliseconds between the clocks of the database and this machine: deadlines of calls are compared with both. */
const MOST_APART_MS = 500;

/** Connects to the server that accepts writes, and looks at it. That no connection is possible, or no answer comes any more, is a finding. */
export async function lookAs(
  findings: Findings,
  role: string,
  { url, tlsFiles }: { url: string; tlsFiles: TlsFiles },
  look: (client: ClientBase) => Promise<void>,
): Promise<void> {
  const servers = new DatabaseServers(url);
  let client: WritableClient;
  try {
    client = await servers.first(async () => {
      const one = new WritableClient({ servers, tlsFiles, query_timeout: ANSWER_MS });
      await one.connect();
      return one;
    });
  } catch (error) {
    const reason = reasonOf(error);
    return findings.problem(`role ${role}`, `cannot connect (${reason})`, connectAdvice(reason));
  }
  try {
    await client.query(LIMITS);
    await tryToLook(findings, `role ${role}`, () => look(client));
  } catch (error) {
    const found = `the database does not answer any more (${(error as Error).message})`;
    findings.problem(`role ${role}`, found, 'look at the server, and at the network');
  } finally {
    if (!(await within(END_MS, client.end()))) client.cutOff(new Error('the database did not end the connection'));
  }
}

/** A look that fails is one finding, and no reason to leave out the others. @throws Error when the database does not answer any more */
export async function tryToLook(findings: Findings, subject: string, look: () => Promise<void>): Promise<void> {
  try {
    await look();
  } catch (error) {
    // The text of an error of the database may contain values of rows.
    const code = sqlState(error);
    if (!code) throw error;
    findings.problem(subject, `could not be looked at (${code})`, lookAdvice(code));
  }
}

/** Tries what the role of a service must be able to do, and what must be refused. Nothing is changed. */
export async function lookAtRole(findings: Findings, client: ClientBase, schema: Schema): Promise<void> {
  const subject = `role ${schema}`;
  await lookAtClock(findings, client, schema);
  await lookAtMigrations(findings, client, schema);
  const before = findings.all.length;
  await lookAtPrivileges(findings, client, schema);
  await lookAtCommits(findings, client, schema);
  const [other] = SCHEMAS.filter((one) => one !== schema);
  if (!(await isDenied(client, `SELECT FROM ${other}.migrations LIMIT 0`)))
    findings.problem(subject, `may read schema ${other}`, `run REVOKE USAGE ON SCHEMA ${other} FROM its role`);
  if (!(await isDenied(client, `CREATE TABLE ${schema}.doctor_tries ()`)))
    findings.problem(subject, `may create tables in schema ${schema}`, `run REVOKE CREATE ON SCHEMA ${schema} FROM its role`);
  if (findings.all.length === before)
    findings.ok(subject, `connects, has its rights in schema ${schema}, and is refused what it must not do`);
}

/** Whether the role has a value of its own, beside that of the server. Exported for its test. */
export async function lookAtCommits(findings: Findings, client: ClientBase, schema: Schema): Promise<void> {
  const { rowCount } = await client.query(
    `SELECT FROM pg_settings WHERE name = 'synchronous_commit' AND setting = 'off' AND source IN ('user', 'database user')`,
  );
  if (rowCount)
    findings.problem(
      `role ${schema}`,
      'has synchronous_commit off: a crash loses the last answers 200',
      'reset it with ALTER ROLE … [IN DATABASE …] RESET synchronous_commit',
    );
}

async function lookAtPrivileges(findings: Findings, client: ClientBase, schema: Schema): Promise<void> {
  const { rows } = await client.query<{ name: string }>('SELECT current_user AS name');
  const differences = await missingPrivileges(client, schema, { name: rows[0]?.name ?? '' }, UNDELETABLE[schema]);
  if (differences.length === 0) return;
  const shown = differences.slice(0, MOST_STATEMENTS).map(({ printable }) => printable);
  const more = differences.length - shown.length;
  findings.problem(
    `role ${schema}`,
    `has other rights than set-up gives: ${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`,
    'run "npm run setup"',
  );
}

async function lookAtClock(findings: Findings, client: ClientBase, schema: Schema): Promise<void> {
  const asked = Date.now();
  const { rows } = await client.query<{ now: number }>('SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now');
  const apart = Math.abs((rows[0]?.now ?? 0) - (asked + Date.now()) / 2);
  const found = `that of the database differs from this machine's by ${Math.round(apart)} ms`;
  if (apart <= MOST_APART_MS) findings.ok(`clock, as ${schema} sees it`, found);
  else
    findings.problem(
      `clock, as ${schema} sees it`,
      found,
      'synchronise both clocks: calls are refused or executed late otherwise',
    );
}

/** Compares with the migrations of this build, by the numbers in the names of their files. */
async function lookAtMigrations(findings: Findings, client: ClientBase, schema: Schema): Promise<void> {
  const folder = join(__dirname, '../../../..', 'apps', schema, 'src/db/migrations');
  const wanted = readdirSync(folder).flatMap((file) => /^(\d+)-.*\.(js|ts)$/.exec(file)?.[1] ?? []);
  const subject = `schema ${schema}`;
  await tryToLook(findings, subject, async () => {
    const { rows } = await client.query<{ timestamp: string }>(`SELECT "timestamp" FROM ${schema}.migrations`);
    const done = new Set(rows.map(({ timestamp }) => timestamp));
    const missing = wanted.filter((timestamp) => !done.has(timestamp));
    if (missing.length > 0)
      findings.problem(subject, `${counted(missing.length, 'migration has', 'migrations have')} not run`, 'run "npm run setup"');
    else await lookForTables(findings, client, schema, wanted.length);
  });
}

/** A table may be gone although its migration has run: set-up does not run it again. */
async function lookForTables(findings: Findings, client: ClientBase, schema: Schema, migrations: number): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT name FROM unnest($2::text[]) AS name WHERE NOT EXISTS (
       SELECT FROM pg_class WHERE relname = name AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1))`,
    [schema, [...TENANT_TABLES[schema].map(({ name }) => name), ...COMMON_TABLES]],
  );
  for (const { name } of rows)
    findings.problem(
      `table ${schema}.${name}`,
      'is missing, although all migrations have run, so that set-up does not make it',
      'restore the database: "Back up and restore" in docs/operations.md',
    );
  if (rows.length === 0) findings.ok(`schema ${schema}`, `all ${migrations} migrations have run, and no table is missing`);
}

async function isDenied(client: ClientBase, statement: string): Promise<boolean> {
  await client.query('BEGIN');
  try {
    await client.query(statement);
    return false;
  } catch (error) {
    if ((error as { code?: string }).code === DENIED) return true;
    throw error;
  } finally {
    await client.query('ROLLBACK');
  }
}

function lookAdvice(code: string): string {
  if (code === '55P03') return 'a session holds a lock on its table: see docs/runbooks/PoolExhausted.md';
  if (code === '57014') return 'it took over 10 s: look for slow statements and a busy disk, and try again';
  if (/^(42|3F)/.test(code)) return 'run "npm run setup", and try again';
  return 'look at the log of PostgreSQL, and try again';
}

function connectAdvice(reason: string): string {
  if (/ENOTFOUND|EAI_AGAIN/.test(reason)) return NO_ADDRESS;
  // It names the certificate, too, which is that of the client.
  if (/\b28\w{3}: /.test(reason)) return 'correct user and password of the URL, or run "npm run setup" with it';
  if (/certificate|self-signed|altname/i.test(reason))
    return 'see "TLS" in docs/operations.md: the authority, the dates and the name of the certificate';
  if (/53300/.test(reason)) return 'raise max_connections, or end sessions: see docs/runbooks/DependencyAway.md';
  if (/57P03/.test(reason)) return 'wait until the database has started';
  if (/accepts no writes/.test(reason))
    return 'name the primary in the URL too, or promote the standby; of a primary, switch default_transaction_read_only off';
  if (/\b3D000/.test(reason)) return 'correct the name of the database in the URL, or create it';
  if (/\b55000/.test(reason)) return 'run ALTER DATABASE … ALLOW_CONNECTIONS true';
  if (/pooler/.test(reason)) return 'name PostgreSQL itself in the URL';
  return 'start the database, and correct host and port of the URL';
}
