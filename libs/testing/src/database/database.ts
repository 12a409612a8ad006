import type { MigrationInterface } from 'typeorm';
import { migrate } from '@app/postgres/migrations/migrate';
import { copyDatabase, createEmptyDatabase, type TestDatabase } from './server-databases';

interface Schema {
  schema: string;
  migrations: (new () => MigrationInterface)[];
}

/** Creates a database with the migrations of a schema, for one test or test file. On a server of the test run it is a copy: migrations take a second. */
export async function createTestDatabase({ schema, migrations }: Schema): Promise<TestDatabase> {
  const { TEST_DATABASE_TEMPLATE: template } = process.env;
  const prepare = async (adminUrl: string) => void (await migrate({ adminUrl, schema, migrations }));
  if (template) return copyDatabase(`${template}_${schema}`, prepare);
  const database = await createEmptyDatabase();
  await prepare(database.url);
  return database;
}
