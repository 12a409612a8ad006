import type { MigrationInterface } from 'typeorm';
import { migrate } from '@app/postgres/migrations/migrate';
import { createEmptyDatabase, type TestDatabase } from './server-databases';

/** Creates a database for one test file, with the migrations of the given schemas. */
export async function createTestDatabase(schemas: Record<string, (new () => MigrationInterface)[]>): Promise<TestDatabase> {
  const database = await createEmptyDatabase();
  for (const [schema, migrations] of Object.entries(schemas)) await migrate({ adminUrl: database.url, schema, migrations });
  return database;
}
