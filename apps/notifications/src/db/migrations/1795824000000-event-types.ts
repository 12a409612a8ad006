import type { MigrationInterface, QueryRunner } from 'typeorm';

export class EventTypes1795824000000 implements MigrationInterface {
  readonly name = 'EventTypes1795824000000';

  async up(runner: QueryRunner): Promise<void> {
    // Constant defaults rewrite no rows. Processes of the version before insert rows without the new columns.
    await runner.query(`
      ALTER TABLE outbox
        ADD COLUMN type text COLLATE "C" NOT NULL DEFAULT 'notification.added.v1',
        ADD COLUMN body json,
        ADD COLUMN trace text COLLATE "C",
        ALTER COLUMN notification_id DROP NOT NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DELETE FROM outbox WHERE type <> 'notification.added.v1' OR notification_id IS NULL`);
    await runner.query(`
      ALTER TABLE outbox DROP COLUMN type, DROP COLUMN body, DROP COLUMN trace, ALTER COLUMN notification_id SET NOT NULL`);
  }
}
