import type { MigrationInterface, QueryRunner } from 'typeorm';

export class OutboxTrace1795824000000 implements MigrationInterface {
  readonly name = 'OutboxTrace1795824000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE outbox ADD COLUMN trace text COLLATE "C"');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE outbox DROP COLUMN trace');
  }
}
