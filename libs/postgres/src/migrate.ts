import type { Client } from 'pg';
import { DataSource, type MigrationInterface } from 'typeorm';
import { tlsProblem, type TlsFiles } from '@app/runtime/tls-files';
import { isDatabaseAway, sqlState } from './errors';
import { TlsClient } from './tls-client';

export interface MigrationSettings {
  /** Connection string of the full-rights account. */
  adminUrl: string;
  /** Connection string of the service. Its role is created when missing. Absent, or the same user as `adminUrl`: no role is created. */
  serviceUrl?: string;
  tlsFiles?: TlsFiles;
  schema: string;
  migrations: (new () => MigrationInterface)[];
}

const PATIENCE_MS = 60_000;

/**
 * Brings one schema to the state of this build: schema, role, migrations, permissions. Safe to repeat and to run concurrently: an advisory lock
 * lets one run at a time. Waits up to 60 s for a database that is still starting.
 *
 * @returns names of the migrations that ran
 */
export async function migrate(settings: MigrationSettings): Promise<string[]> {
  const client = await connect(settings);
  try {
    await client.query('SELECT pg_advisory_lock(hashtext($1))', [`migrate:${settings.schema}`]);
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${client.escapeIdentifier(settings.schema)}`);
    const ran = await runMigrations(settings);
    await grantOwnSchema(client, settings);
    return ran;
  } finally {
    // The end of the session also releases the advisory lock.
    await client.end();
  }
}

async function connect(settings: MigrationSettings): Promise<Client> {
  for (const deadline = Date.now() + PATIENCE_MS; ;) {
    const client = new TlsClient({ connectionString: settings.adminUrl, tlsFiles: settings.tlsFiles });
    // Without a listener a lost idle connection would end the process. The next query reports the loss.
    client.on('error', () => undefined);
    try {
      await client.connect();
      return client;
    } catch (error) {
      await client.end().catch(() => undefined);
      if (!isStarting(error) || Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

/** Whether waiting may help. It does not help against a wrong password (28) or certificate. */
const isStarting = (error: unknown) => isDatabaseAway(error) && !/^28/.test(sqlState(error)) && !tlsProblem(error);

async function runMigrations(settings: MigrationSettings): Promise<string[]> {
  const dataSource = await new DataSource({
    type: 'postgres',
    url: settings.adminUrl,
    schema: settings.schema,
    migrations: settings.migrations,
    migrationsTableName: 'migrations',
    migrationsTransactionMode: 'each',
    extra: { Client: TlsClient, tlsFiles: settings.tlsFiles, options: `-c search_path=${settings.schema}`, max: 1 },
  }).initialize();
  try {
    return (await dataSource.runMigrations()).map((migration) => migration.name);
  } finally {
    await dataSource.destroy();
  }
}

/** Grants the service's role access to the rows of its own schema and nothing else: it owns no table and cannot alter one. */
async function grantOwnSchema(client: Client, { adminUrl, serviceUrl, schema }: MigrationSettings): Promise<void> {
  if (!serviceUrl) return;
  const service = new URL(serviceUrl);
  const name = decodeURIComponent(service.username);
  if (name === decodeURIComponent(new URL(adminUrl).username)) return;

  const role = client.escapeIdentifier(name);
  const password = client.escapeLiteral(decodeURIComponent(service.password));
  const existing = await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [name]);
  await client.query(`${existing.rowCount ? 'ALTER' : 'CREATE'} ROLE ${role} LOGIN PASSWORD ${password}`);
  const own = client.escapeIdentifier(schema);
  await client.query(`GRANT USAGE ON SCHEMA ${own} TO ${role}`);
  await client.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${own} TO ${role}`);
  await client.query(`REVOKE INSERT, UPDATE, DELETE ON ${own}.migrations FROM ${role}`);
  await client.query(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${own} TO ${role}`);
}
