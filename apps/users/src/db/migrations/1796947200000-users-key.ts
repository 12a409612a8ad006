import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Becomes the primary key in the next migration: it also finds the organizations of a user. */
export class UsersKey1796947200000 implements MigrationInterface {
  readonly name = 'UsersKey1796947200000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // An attempt that was interrupted leaves an index that is not valid.
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS users_key');
    await runner.query('CREATE UNIQUE INDEX CONCURRENTLY users_key ON users (user_id, organization)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX users_key');
  }
}
