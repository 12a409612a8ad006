import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Whether a document is restricted decides who sees what is for everybody. Without the document in them, the planner takes an index that has
 * it for cheaper than one in the order of a page, when it expects less than a page: then it reads and sorts all there is.
 */
export class Covering1795651200000 implements MigrationInterface {
  readonly name = 'Covering1795651200000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX notifications_to_all, notifications_to_all_by_location');
    await runner.query(`
      CREATE INDEX notifications_to_all ON notifications (organization, "timestamp", id, document_id) WHERE notify_all`);
    await runner.query(`
      CREATE INDEX notifications_to_all_by_location ON notifications (organization, location_id, "timestamp", id, document_id)
        WHERE notify_all AND location_id IS NOT NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX notifications_to_all, notifications_to_all_by_location');
    await runner.query(`
      CREATE INDEX notifications_to_all ON notifications (organization, "timestamp", id) WHERE notify_all`);
    await runner.query(`
      CREATE INDEX notifications_to_all_by_location ON notifications (organization, location_id, "timestamp", id)
        WHERE notify_all AND location_id IS NOT NULL`);
  }
}
