import type { DataSource } from 'typeorm';
import { describeSchema, migrateInterrupted, undoMigrations, withoutMigrations } from '@app/testing/database/schema';
import type { TestDatabase } from '@app/testing/database/server-databases';
import { connectTestDatabase } from '../../test/users';

let database: TestDatabase;
let dataSource: DataSource;

beforeAll(async () => {
  ({ database, dataSource } = await connectTestDatabase(2));
});

afterAll(async () => {
  await dataSource?.destroy();
  await database?.drop();
});

describe('schema', () => {
  // It compares columns (type, collation, nullability, default, identity, key), constraints and indexes by name, and the table that a
  // foreign key refers to. It does not see a table without an entity, nor other columns or conditions under the same name.
  it('matches the entities', async () => {
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    expect(upQueries.map(({ query }) => query)).toEqual([]);
  });

  it('compares text identifiers byte by byte', async () => {
    const columns = await dataSource.query<{ name: string }[]>(
      `SELECT table_name || '.' || column_name AS name FROM information_schema.columns
       WHERE table_schema = 'users' AND table_name <> 'migrations' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`,
    );
    // Only texts for people, which are never keys, have another collation.
    expect(columns.map(({ name }) => name).sort()).toEqual(['api_keys.name', 'users.email', 'users.initial', 'users.name']);
  });

  it('is gone after the migrations are reverted, and the same after they ran again', async () => {
    const before = await describeSchema(dataSource);
    await undoMigrations(dataSource);
    expect(await withoutMigrations(dataSource)).toEqual([]);
    await dataSource.runMigrations({ transaction: 'each' });
    expect(await describeSchema(dataSource)).toEqual(before);
  });

  it('is the same when each migration that is no transaction has begun before', async () => {
    const before = await describeSchema(dataSource);
    await undoMigrations(dataSource);
    await migrateInterrupted(dataSource);
    expect(await describeSchema(dataSource)).toEqual(before);
  });
});
