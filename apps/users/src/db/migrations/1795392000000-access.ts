import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Access1795392000000 implements MigrationInterface {
  readonly name = 'Access1795392000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE documents
        ADD COLUMN folder_id text COLLATE "C",
        ADD COLUMN access text COLLATE "C" NOT NULL DEFAULT 'organizationPrivate',
        ADD COLUMN version bigint NOT NULL DEFAULT 0,
        ADD CONSTRAINT documents_folder_fkey FOREIGN KEY (organization, folder_id) REFERENCES folders`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE documents DROP COLUMN version, DROP COLUMN access, DROP COLUMN folder_id');
  }
}
