import { setTimeout as sleep } from 'node:timers/promises';
import pg, { type Client } from 'pg';
import { DataSource, type MigrationInterface } from 'typeorm';
import type { TlsFiles } from '@app/runtime/settings/tls-files';
import { DatabaseServers } from '../connections/database-servers';
import { isDatabaseAway, isRefused } from '../errors';
import { FailoverPool } from '../connections/failover-pool';
import { change, missingPrivileges, missingRoleAndSchema, serviceRoleOf } from './required-rights';
import { WritableClient } from '../connections/writable-client';

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
}

const PATIENCE_MS = 60_000;
const LOCK_EVERY_MS = 200;

/**
 * Brings one schema to the state of this build: schema, role, migrations, permissions. It changes only what differs. Safe to repeat and to run
 * concurrently: an advisory lock lets one run at a time. Waits up to 60 s for a database that is still starting.
 *
 * @returns names of the migrations that ran
 * @throws MissingRights when the full-rights account may not make a change that is necessary
 */
export async function migrate(settings: MigrationSettings): Promise<string[]> {
  const servers = new DatabaseServers(settings.adminUrl);
  const client = await connect(settings, servers);
  try {
    await lock(client, settings.schema);
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
async function lock(client: Client, schema: string): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock(hashtext($1)) AS locked', [
      `migrate:${schema}`,
    ]);
    if (rows[0].locked) return;
    await sleep(LOCK_EVERY_MS);
  }
}

async function connect(settings: MigrationSettings, servers: DatabaseServers): Promise<Client> {
  for (const deadline = Date.now() + PATIENCE_MS; ;) {
    try {
      return await servers.first(() => new WritableClient({ servers, tlsFiles: settings.tlsFiles }).connect());
    } catch (error) {
      if (isRefused(error) || !isDatabaseAway(error) || Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

async function runMigrations(settings: MigrationSettings, servers: DatabaseServers): Promise<string[]> {
  const dataSource = await new DataSource({
    type: 'postgres',
    driver: { ...pg, Pool: FailoverPool },
    url: servers.current,
    schema: settings.schema,
    migrations: settings.migrations,
    migrationsTableName: 'migrations',
    migrationsTransactionMode: 'each',
    extra: { options: `-c search_path=${settings.schema}`, max: 1, Client: WritableClient, servers, tlsFiles: settings.tlsFiles },
  }).initialize();
  try {
    return (await dataSource.runMigrations()).map((migration) => migration.name);
  } finally {
    await dataSource.destroy();
  }
}
