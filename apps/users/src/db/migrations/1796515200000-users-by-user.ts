import type { MigrationInterface, QueryRunner } from 'typeorm';

/** An erasure finds the organizations of a user by it. */
export class UsersByUser1796515200000 implements MigrationInterface {
  readonly name = 'UsersByUser1796515200000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // An attempt that was interrupted leaves an index that is not valid.
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS users_by_user');
    await runner.query('CREATE INDEX CONCURRENTLY users_by_user ON users (user_id, organization)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX users_by_user');
  }
}
