import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The time at which all rows of an erasure were gone: a transaction that began before it may not see the erasure. */
export class ErasureWalks1797206400000 implements MigrationInterface {
  readonly name = 'ErasureWalks1797206400000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE erasures ADD COLUMN walked_at timestamptz');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE erasures DROP COLUMN walked_at');
  }
}
