import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import type { MigrationInterface } from 'typeorm';
import { migrate } from '@app/postgres/migrate';
import { requiredEnv } from './required-env';

export interface TestDatabase {
  /** Full rights on a database that only this test file uses. */
  url: string;
  drop(): Promise<void>;
}

/** Creates a database for one test file, with the migrations of the given schemas. */
export async function createTestDatabase(schemas: Record<string, (new () => MigrationInterface)[]>): Promise<TestDatabase> {
  const serverUrl = requiredEnv('TEST_DATABASE_URL');
  const name = `test_${randomBytes(6).toString('hex')}`;
  await onServer(serverUrl, `CREATE DATABASE ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  for (const [schema, migrations] of Object.entries(schemas)) await migrate({ adminUrl: url.href, schema, migrations });
  return { url: url.href, drop: () => onServer(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`) };
}

async function onServer(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
