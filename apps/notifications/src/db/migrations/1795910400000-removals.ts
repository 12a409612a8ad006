import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Removals1795910400000 implements MigrationInterface {
  readonly name = 'Removals1795910400000';

  async up(runner: QueryRunner): Promise<void> {
    // Constant defaults rewrite no rows. Processes of the version before insert rows without the new columns.
    await runner.query(`
      ALTER TABLE members ADD COLUMN added bigint NOT NULL DEFAULT 0, ADD COLUMN removed bigint NOT NULL DEFAULT '-1'`);
    await runner.query(`
      CREATE TABLE departures (
        organization bigint NOT NULL,
        user_id text COLLATE "C" NOT NULL,
        version bigint NOT NULL,
        CONSTRAINT departures_pkey PRIMARY KEY (organization, user_id)
      )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE departures');
    await runner.query('ALTER TABLE members DROP COLUMN removed, DROP COLUMN added');
  }
}
