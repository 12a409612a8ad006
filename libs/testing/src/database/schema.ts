import type { DataSource } from 'typeorm';

/** Every column, constraint and index of the schema of a service, as PostgreSQL prints them. */
export function describeSchema(dataSource: DataSource): Promise<unknown[]> {
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
export function withoutMigrations(dataSource: DataSource): Promise<unknown[]> {
  return dataSource.query<unknown[]>(
    `SELECT relname FROM pg_class LEFT JOIN pg_index ON indexrelid = pg_class.oid
     WHERE relnamespace = current_schema::regnamespace
       AND 'migrations' NOT IN (relname, coalesce(indrelid::regclass::text, '')) AND relname <> 'migrations_id_seq'`,
  );
}

export async function undoMigrations(dataSource: DataSource): Promise<void> {
  for (let undone = 0; undone < dataSource.migrations.length; undone++)
    await dataSource.undoLastMigration({ transaction: 'each' });
}

/** Runs each migration that is no transaction twice: each of its statements stays when a later one is interrupted. */
export async function migrateInterrupted(dataSource: DataSource): Promise<void> {
  const runner = dataSource.createQueryRunner();
  for (const migration of dataSource.migrations) {
    if (migration.transaction === false) await migration.up(runner);
    await migration.up(runner);
  }
  await runner.release();
}
