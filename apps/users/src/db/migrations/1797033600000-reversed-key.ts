import type { MigrationInterface, QueryRunner } from 'typeorm';

const TABLES = ['organization_members', 'folder_members', 'document_members'];

/**
 * Most statements lock `users` first, but not all. So an attempt ends long before PostgreSQL looks for a deadlock, which would end a statement of
 * a call. Calls wait behind it meanwhile. One attempt in ten takes longer, because PostgreSQL ends an autovacuum only then.
 */
const LOCK = `
  DO $$
  BEGIN
    FOR attempt IN 1..100 LOOP
      BEGIN
        PERFORM set_config('lock_timeout', CASE attempt % 10 WHEN 0 THEN '1500ms' ELSE '100ms' END, true);
        LOCK TABLE users, ${TABLES.join(', ')} IN ACCESS EXCLUSIVE MODE;
        RETURN;
      EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        PERFORM pg_sleep(0.1);
      END;
    END LOOP;
    RAISE lock_not_available USING MESSAGE = 'a transaction holds the tables of memberships for long, such as that of a backup';
  END $$`;

/**
 * Reverses the primary key of `users`. A foreign key depends on the index of the key that it refers to, so three are made anew. No row is
 * read: the next migration checks the rows that are there. New rows are checked at any time.
 */
export class ReversedKey1797033600000 implements MigrationInterface {
  readonly name = 'ReversedKey1797033600000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(LOCK);
    await dropForeignKeys(runner);
    await runner.query(
      'ALTER TABLE users DROP CONSTRAINT users_pkey, ADD CONSTRAINT users_pkey PRIMARY KEY USING INDEX users_key',
    );
    await addForeignKeys(runner, 'NOT VALID');
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropForeignKeys(runner);
    await runner.query(
      'ALTER TABLE users DROP CONSTRAINT users_pkey, ADD CONSTRAINT users_pkey PRIMARY KEY (organization, user_id)',
    );
    await addForeignKeys(runner);
    await runner.query('CREATE UNIQUE INDEX users_key ON users (user_id, organization)');
  }
}

async function dropForeignKeys(runner: QueryRunner): Promise<void> {
  for (const table of TABLES) await runner.query(`ALTER TABLE ${table} DROP CONSTRAINT ${table}_user_fkey`);
}

async function addForeignKeys(runner: QueryRunner, checked = ''): Promise<void> {
  for (const table of TABLES)
    await runner.query(`
      ALTER TABLE ${table} ADD CONSTRAINT ${table}_user_fkey
        FOREIGN KEY (organization, user_id) REFERENCES users (organization, user_id) ${checked}`);
}
