import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * notifyAll rows need document_id for the access check. Unless these indexes contain it, the planner may choose the by-document index and sort
 * every row, instead of reading one page in order.
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
