import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Retention1795564800000 implements MigrationInterface {
  readonly name = 'Retention1795564800000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE INDEX notifications_by_age ON notifications ("timestamp")`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX notifications_by_age');
  }
}
