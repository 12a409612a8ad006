import { DataSource } from 'typeorm';

/**
 * Tests that the migrations of a service make the schema of its entities, and can be reverted, interrupted and repeated. Call it last, because
 * no migration is recorded then.
 *
 * @param entities a class for each table. Services do not load them: each of their statements is SQL
 */
export function testMigrations(use: () => DataSource, entities: (new () => unknown)[]): void {
  // It compares columns (type, collation, nullability, default, identity, key), constraints and indexes by name, and the table that a
  // foreign key refers to. It does not see a table without an entity, nor other columns or conditions under the same name.
  it('matches the entities', async () => {
    const described = await new DataSource({ ...use().options, entities }).initialize();
    const { upQueries } = await described.driver.createSchemaBuilder().log();
    await described.destroy();
    expect(upQueries.map(({ query }) => query)).toEqual([]);
  });

  it('is gone after the migrations are reverted, and the same after they ran again', async () => {
    const before = await describeSchema(use());
    await undoMigrations(use());
    expect(await withoutMigrations(use())).toEqual([]);
    await use().runMigrations({ transaction: 'each' });
    expect(await describeSchema(use())).toEqual(before);
  });

  it('is the same when each migration that is no transaction has begun before', async () => {
    const before = await describeSchema(use());
    await undoMigrations(use());
    await migrateInterrupted(use());
    expect(await describeSchema(use())).toEqual(before);
  });
}

/** Every column, constraint and index of the schema of a service, as PostgreSQL prints them. */
function describeSchema(dataSource: DataSource): Promise<unknown[]> {
  return dataSource.query<unknown[]>(`
    SELECT 'column' AS kind, attrelid::regclass::text AS "table", attname AS name,
      format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' not null' ELSE '' END AS definition
    FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    WHERE relnamespace = current_schema::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = current_schema::regnamespace
    UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema
    ORDER BY 1, 2, 3`);
}

/** Tables, indexes and sequences of it other than TypeORM's table of migrations. */
function withoutMigrations(dataSource: DataSource): Promise<unknown[]> {
  return dataSource.query<unknown[]>(
    `SELECT relname FROM pg_class LEFT JOIN pg_index ON indexrelid = pg_class.oid
     WHERE relnamespace = current_schema::regnamespace
       AND 'migrations' NOT IN (relname, coalesce(indrelid::regclass::text, '')) AND relname <> 'migrations_id_seq'`,
  );
}

async function undoMigrations(dataSource: DataSource): Promise<void> {
  for (let undone = 0; undone < dataSource.migrations.length; undone++)
    await dataSource.undoLastMigration({ transaction: 'each' });
}

/** Runs each migration that is no transaction twice: each of its statements stays when a later one is interrupted. */
async function migrateInterrupted(dataSource: DataSource): Promise<void> {
  const runner = dataSource.createQueryRunner();
  for (const migration of dataSource.migrations) {
    if (migration.transaction === false) await migration.up(runner);
    await migration.up(runner);
  }
  await runner.release();
}
