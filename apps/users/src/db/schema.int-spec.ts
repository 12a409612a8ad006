import type { DataSource, MigrationInterface } from 'typeorm';
import type { TestDatabase } from '@app/testing/database/server-databases';
import { connectTestDatabase } from '../../test/users';
import { DATABASE } from './schema';

let database: TestDatabase;
let dataSource: DataSource;

beforeAll(async () => {
  ({ database, dataSource } = await connectTestDatabase(2));
});

afterAll(async () => {
  await dataSource?.destroy();
  await database?.drop();
});

/** Every column, constraint and index, as PostgreSQL prints them. */
async function describeSchema(): Promise<unknown[]> {
  return dataSource.query(`
    SELECT 'column' AS kind, attrelid::regclass::text AS "table", attname AS name,
      format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' not null' ELSE '' END AS definition
    FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    WHERE relnamespace = current_schema::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = current_schema::regnamespace
    UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema
    ORDER BY 1, 2, 3`);
}

/** Tables and sequences other than TypeORM's table of migrations. */
const leftovers = () =>
  dataSource.query<unknown[]>(
    `SELECT relname FROM pg_class LEFT JOIN pg_index ON indexrelid = oid
     WHERE relnamespace = 'users'::regnamespace AND 'migrations' NOT IN (relname, coalesce(indrelid::regclass::text, ''))
       AND relname <> 'migrations_id_seq'`,
  );

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
    const before = await describeSchema();
    for (let step = 0; step < DATABASE.migrations.length; step++) await dataSource.undoLastMigration({ transaction: 'each' });
    expect(await leftovers()).toEqual([]);
    await dataSource.runMigrations({ transaction: 'each' });
    expect(await describeSchema()).toEqual(before);
  });

  // Each statement of such a migration stays when a later one is interrupted.
  it('is the same when each migration that is no transaction has begun before', async () => {
    const before = await describeSchema();
    for (let step = 0; step < DATABASE.migrations.length; step++) await dataSource.undoLastMigration({ transaction: 'each' });
    const runner = dataSource.createQueryRunner();
    for (const Migration of DATABASE.migrations) {
      const migration: MigrationInterface = new Migration();
      if (migration.transaction === false) await migration.up(runner);
      await migration.up(runner);
    }
    await runner.release();
    expect(await describeSchema()).toEqual(before);
  });
});
