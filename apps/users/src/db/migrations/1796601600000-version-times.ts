import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Says which memberships ended 30 days ago: a row for each day. */
export class VersionTimes1796601600000 implements MigrationInterface {
  readonly name = 'VersionTimes1796601600000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE version_times (
        day date CONSTRAINT version_times_pkey PRIMARY KEY,
        version bigint NOT NULL,
        looked_to bigint NOT NULL
      )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE version_times');
  }
}
