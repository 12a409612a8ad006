import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Deleted notifications keep their id taken for a day, and are then found by this index. */
export class DeletedNotifications1796256000000 implements MigrationInterface {
  readonly name = 'DeletedNotifications1796256000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // An attempt that was interrupted leaves an index that is not valid.
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS notifications_deleted');
    await runner.query(`CREATE INDEX CONCURRENTLY notifications_deleted ON notifications ("timestamp") WHERE document_id = ''`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX notifications_deleted');
  }
}
