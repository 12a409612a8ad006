import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Deletions1796169600000 implements MigrationInterface {
  readonly name = 'Deletions1796169600000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE deletions (
        api_key text COLLATE "C" NOT NULL,
        message_id text COLLATE "C" NOT NULL,
        moment bigint NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT deletions_pkey PRIMARY KEY (api_key, message_id)
      )`);
    await runner.query('CREATE INDEX deletions_by_age ON deletions (created_at)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE deletions');
  }
}
