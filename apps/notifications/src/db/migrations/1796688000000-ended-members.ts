import type { MigrationInterface, QueryRunner } from 'typeorm';

const INDEXES = [
  ['members_ended', 'members (removed) WHERE removed >= added'],
  ['departures_by_version', 'departures (version)'],
];

/** Copied memberships that ended long ago are found by these and deleted. */
export class EndedMembers1796688000000 implements MigrationInterface {
  readonly name = 'EndedMembers1796688000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const [name, on] of INDEXES) {
      // An attempt that was interrupted leaves an index that is not valid.
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX ${INDEXES.map(([name]) => name).join(', ')}`);
  }
}
