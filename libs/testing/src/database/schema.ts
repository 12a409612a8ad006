import { readFileSync } from 'node:fs';
import type { DataSource } from 'typeorm';

/**
 * Tests that the migrations of a service make the tables that its file describes, and can be reverted, interrupted and repeated. Call it last,
 * because no migration is recorded then.
 *
 * @param file SQL that makes the tables
 */
export function testMigrations(use: () => DataSource, file: string): void {
  it('has the tables that are described', async () => {
    expect(await describeSchema(use())).toEqual(await describeAfter(use(), readFileSync(file, 'utf8')));
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

/** Every table, column, constraint, index and sequence of the current schema but for TypeORM's of migrations, as PostgreSQL prints them. */
async function describeSchema(connection: { query(statement: string): Promise<unknown> }): Promise<unknown[]> {
  return (await connection.query(`
    WITH tables AS (
      SELECT oid, relname AS name, reloptions FROM pg_class
      WHERE relnamespace = current_schema::regnamespace AND relkind = 'r' AND relname <> 'migrations'
    )
    SELECT 'table' AS kind, name AS "table", '' AS name, array_to_string(reloptions, ' ') AS definition FROM tables
    UNION ALL SELECT 'column', t.name, attname, concat_ws(' ', format_type(atttypid, atttypmod), collname,
      CASE WHEN attnotnull THEN 'not null' END, nullif(attidentity::text, ''), pg_get_expr(adbin, adrelid), array_to_string(attoptions, ' '))
    FROM tables t JOIN pg_attribute ON attrelid = t.oid LEFT JOIN pg_collation c ON c.oid = attcollation
      LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attnum > 0 AND NOT attisdropped
    UNION ALL SELECT 'constraint', name, conname, pg_get_constraintdef(pg_constraint.oid)
    FROM tables JOIN pg_constraint ON conrelid = tables.oid WHERE contype <> 'n'
    UNION ALL SELECT 'index', name, indexrelid::regclass::text, pg_get_indexdef(indexrelid, 0, true)
    FROM tables JOIN pg_index ON indrelid = oid
    UNION ALL SELECT 'sequence', '', sequencename, format('%s %s %s', start_value, increment_by, cache_size)
    FROM pg_sequences WHERE schemaname = current_schema AND sequencename <> 'migrations_id_seq'
    ORDER BY 1, 2, 3`)) as unknown[];
}

/** The description of a schema that these statements have made. */
async function describeAfter(dataSource: DataSource, statements: string): Promise<unknown[]> {
  const runner = dataSource.createQueryRunner();
  try {
    await runner.startTransaction();
    await runner.query('CREATE SCHEMA described; SET LOCAL search_path = described');
    await runner.query(statements);
    return await describeSchema(runner);
  } finally {
    await runner.rollbackTransaction();
    await runner.release();
  }
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
