import type { MigrationInterface, QueryRunner } from 'typeorm';

const TABLES = ['organization_members', 'folder_members', 'document_members'];

export class Removals1795910400000 implements MigrationInterface {
  readonly name = 'Removals1795910400000';

  async up(runner: QueryRunner): Promise<void> {
    // Constant defaults rewrite no rows. -1: never.
    await runner.query(`ALTER TABLE users ADD COLUMN left_version bigint NOT NULL DEFAULT '-1'`);
    for (const table of TABLES) {
      await runner.query(`
        ALTER TABLE ${table} ADD COLUMN added bigint NOT NULL DEFAULT 0, ADD COLUMN removed bigint NOT NULL DEFAULT '-1'`);
      // Processes of the version before insert rows without it.
      await runner.query(`ALTER TABLE ${table} ALTER COLUMN added SET DEFAULT nextval('versions')`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of TABLES) await runner.query(`ALTER TABLE ${table} DROP COLUMN removed, DROP COLUMN added`);
    await runner.query('ALTER TABLE users DROP COLUMN left_version');
  }
}
