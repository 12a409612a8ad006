import type { MigrationInterface, QueryRunner } from 'typeorm';

/** API keys take turns, so the next erasure is looked for by its key. */
export class ErasuresByKey1796774400000 implements MigrationInterface {
  readonly name = 'ErasuresByKey1796774400000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // An attempt that was interrupted leaves an index that is not valid.
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS erasures_by_key');
    await runner.query('CREATE INDEX CONCURRENTLY erasures_by_key ON erasures (api_key, id)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX erasures_by_key');
  }
}
