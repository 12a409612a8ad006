import type { MigrationInterface, QueryRunner } from 'typeorm';

const INDEXES = [
  ['organization_members_ended', 'organization_members (removed) WHERE removed >= added'],
  ['folder_members_ended', 'folder_members (removed) WHERE removed >= added'],
  ['document_members_ended', 'document_members (removed) WHERE removed >= added'],
  ['users_by_departure', 'users (left_version) WHERE left_version >= 0'],
];

/** Memberships that ended long ago are found by these and deleted. A membership that is live, and a user who never left, are in none of them. */
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
