import type { MigrationInterface, QueryRunner } from 'typeorm';

const INDEXES = [
  ['erasures_open', 'erasures (api_key, received_at) WHERE user_ids IS NOT NULL'],
  ['erasures_complete', 'erasures (received_at) WHERE user_ids IS NULL'],
];

/** Open erasures are found without the complete ones, which stay for a week. */
export class OpenErasures1796774400000 implements MigrationInterface {
  readonly name = 'OpenErasures1796774400000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const [name, on] of INDEXES) {
      // An attempt that was interrupted leaves an index that is not valid.
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
    }
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS erasures_by_age');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE INDEX erasures_by_age ON erasures (received_at)');
    await runner.query(`DROP INDEX ${INDEXES.map(([name]) => name).join(', ')}`);
  }
}
