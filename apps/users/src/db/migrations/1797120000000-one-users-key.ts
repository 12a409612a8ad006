import type { MigrationInterface, QueryRunner } from 'typeorm';

const TABLES = ['organization_members', 'folder_members', 'document_members'];

/** Checks the memberships that were there when the primary key of `users` was reversed. That key has the columns of `users_by_user`. */
export class OneUsersKey1797120000000 implements MigrationInterface {
  readonly name = 'OneUsersKey1797120000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const table of TABLES) await runner.query(`ALTER TABLE ${table} VALIDATE CONSTRAINT ${table}_user_fkey`);
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS users_by_user');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE INDEX users_by_user ON users (user_id, organization)');
  }
}
