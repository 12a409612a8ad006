import { setTimeout as sleep } from 'node:timers/promises';
import pg, { type Client } from 'pg';
import { DataSource, MigrationExecutor, type MigrationInterface } from 'typeorm';
import type { TlsFiles } from '@app/runtime/settings/tls-files';
import { DatabaseServers } from '../connections/database-servers';
import { isDatabaseAway, isRefused, reasonOf, sqlState } from '../errors';
import { FailoverPool } from '../connections/failover-pool';
import { change, missingPrivileges, missingRoleAndSchema, serviceRoleOf } from './required-rights';
import { tryToLock } from './schema-lock';
import { UnlimitedClient } from '../connections/unlimited-client';

export interface MigrationSettings {
  /** Connection string of the full-rights account, with one or several servers. */
  adminUrl: string;
  /** Connection string of the service. Its role is created when missing. Absent, or the same user as `adminUrl`: no role is created. */
  serviceUrl?: string;
  tlsFiles?: TlsFiles;
  schema: string;
  migrations: (new () => MigrationInterface)[];
  /** Tables of which the service may delete no rows, because others rely on it. */
  undeletable?: readonly string[];
  /** Longest wait for a database that is still starting, and for the lock of a table. Default 60,000. */
  patienceMs?: number;
  /** Called once for each reason why it waits. */
  onWait?: (reason: string) => void;
}

type Waiting = Omit<MigrationSettings, 'onWait'> & Required<Pick<MigrationSettings, 'onWait'>>;

const PATIENCE_MS = 60_000;
const LOCK_EVERY_MS = 200;
/** A migration takes milliseconds, unless it builds an index or waits for transactions. */
const LONG_MS = 2000;
/**
 * Longest waits of an attempt for the lock of each table, in turn, and the pause after it. Calls wait behind an attempt, which keeps the tables that it
 * has, and go on in the pause. PostgreSQL ends an autovacuum of the table when something has waited for it for a second.
 */
const TABLE_LOCK_MS = [300, 300, 300, 1500];
const WITHOUT_LOCK_MS = 700;
/** lock_not_available, and deadlock_detected: a transaction that holds a table may want one that the migration has changed. */
const TABLE_HELD: ReadonlySet<string> = new Set(['55P03', '40P01']);

/** A migration failed. The message begins with its name. */
export class MigrationFailed extends Error {
  /** SQLSTATE, or empty. */
  readonly code: string;
  constructor(name: string, cause: unknown) {
    super(`${name}: ${(cause as Error).message}`, { cause });
    this.code = sqlState(cause);
  }
}

/** A transaction has held a table that a migration changes. */
export class TableHeld extends Error {
  constructor(name: string, cause: unknown) {
    super(
      `${name} changes a table that a transaction holds, such as that of a backup. Wait for its end, or end it: "npm run doctor" counts long transactions`,
      { cause },
    );
  }
}

/**
 * Brings one schema to the state of this build: schema, role, migrations, permissions. It changes only what differs. Safe to repeat and to run
 * concurrently: an advisory lock lets one run at a time. Waits up to 60 s for a database that is still starting, and for a table that a
 * transaction holds.
 *
 * @returns names of the migrations that ran
 * @throws MissingRights when the full-rights account may not make a change that is necessary
 * @throws MigrationFailed, or TableHeld
 */
export async function migrate({ onWait = () => undefined, ...given }: MigrationSettings): Promise<string[]> {
  const said = new Set<string>();
  const sayOnce = (reason: string) => {
    if (!said.has(reason)) onWait(reason);
    said.add(reason);
  };
  const settings = { ...given, onWait: sayOnce };
  const servers = new DatabaseServers(settings.adminUrl);
  const client = await connect(settings, servers);
  try {
    await lock(client, settings);
    const role = serviceRoleOf(settings.serviceUrl, settings.adminUrl, { tlsFiles: settings.tlsFiles });
    await change(client, () => missingRoleAndSchema(client, settings.schema, role));
    const ran = await runMigrations(settings, servers);
    if (role) await change(client, () => missingPrivileges(client, settings.schema, role, settings.undeletable ?? []));
    return ran;
  } finally {
    // The end of the session also releases the advisory lock.
    await client.end();
  }
}

/**
 * Asks for the lock again and again. A statement that waits for it would have a snapshot, and the run with the lock would wait for the end of that
 * snapshot in CREATE INDEX CONCURRENTLY: both for ever.
 */
async function lock(client: Client, { schema, onWait }: Waiting): Promise<void> {
  while (!(await tryToLock(client, schema))) {
    onWait('another set-up works on it, or the removal of a tenant');
    await sleep(LOCK_EVERY_MS);
  }
}

async function connect({ tlsFiles, patienceMs = PATIENCE_MS, onWait }: Waiting, servers: DatabaseServers): Promise<Client> {
  for (const deadline = Date.now() + patienceMs; ;) {
    try {
      return await servers.first(() => new UnlimitedClient({ servers, tlsFiles }).connect());
    } catch (error) {
      if (isRefused(error) || !isDatabaseAway(error) || Date.now() > deadline) throw error;
      onWait(`the database cannot be used (${reasonOf(error)})`);
      await sleep(500);
    }
  }
}

async function runMigrations(settings: Waiting, servers: DatabaseServers): Promise<string[]> {
  const dataSource = await new DataSource({
    type: 'postgres',
    driver: { ...pg, Pool: FailoverPool },
    url: servers.current,
    schema: settings.schema,
    migrations: settings.migrations,
    migrationsTableName: 'migrations',
    migrationsTransactionMode: 'each',
    // The default one prints each failed attempt, also beside the result of --json.
    logger: 'debug',
    extra: {
      parameters: { search_path: settings.schema },
      max: 1,
      Client: UnlimitedClient,
      servers,
      tlsFiles: settings.tlsFiles,
    },
  }).initialize();
  try {
    const pending = await new MigrationExecutor(dataSource).getPendingMigrations();
    await runPatiently(dataSource, settings);
    return pending.map(({ name }) => name);
  } finally {
    await dataSource.destroy();
  }
}

/** Every later statement on a table waits behind a migration that waits for its lock. Nothing waits behind one that is no transaction. */
async function runPatiently(dataSource: DataSource, { patienceMs = PATIENCE_MS, onWait }: Waiting): Promise<void> {
  let attempt = 0;
  let running = '';
  for (const migration of dataSource.migrations) {
    const up = migration.up.bind(migration);
    migration.up = async (runner) => {
      running = migration.name ?? migration.constructor.name;
      const waitMs = TABLE_LOCK_MS[attempt % TABLE_LOCK_MS.length];
      const long = setTimeout(() => onWait(`${running} still runs: docs/operations.md, "Upgrade"`), LONG_MS);
      try {
        if (migration.transaction !== false) await runner.query(`SET LOCAL lock_timeout = ${waitMs}`);
        await up(runner);
      } finally {
        clearTimeout(long);
      }
    };
  }
  for (const until = Date.now() + patienceMs; ; attempt++) {
    try {
      await dataSource.runMigrations();
      return;
    } catch (error) {
      if (running === '') throw error;
      if (!TABLE_HELD.has(sqlState(error))) throw new MigrationFailed(running, error);
      if (Date.now() > until) throw new TableHeld(running, error);
      onWait(`a transaction holds a table that ${running} changes`);
      await sleep(WITHOUT_LOCK_MS);
    }
  }
}
