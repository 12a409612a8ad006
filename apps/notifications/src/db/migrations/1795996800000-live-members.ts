import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A page reads the documents and folders of a user from this index alone, and skips those that the user was removed from. */
export class LiveMembers1795996800000 implements MigrationInterface {
  readonly name = 'LiveMembers1795996800000';
  // CONCURRENTLY is not allowed in a transaction.
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // An attempt that was interrupted leaves an index that is not valid.
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS members_live');
    await runner.query(`
      CREATE INDEX CONCURRENTLY members_live ON members (organization, user_id, level, id, added) WHERE added > removed`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX members_live');
  }
}
