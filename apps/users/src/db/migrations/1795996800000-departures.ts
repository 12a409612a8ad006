import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Republication reads users who have left. An index on these few rows costs other statements nothing. */
export class Departures1795996800000 implements MigrationInterface {
  readonly name = 'Departures1795996800000';
  // CONCURRENTLY is not allowed in a transaction.
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // An attempt that was interrupted leaves an index that is not valid.
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS users_departed');
    await runner.query('CREATE INDEX CONCURRENTLY users_departed ON users (organization, user_id) WHERE left_version >= 0');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX users_departed');
  }
}
