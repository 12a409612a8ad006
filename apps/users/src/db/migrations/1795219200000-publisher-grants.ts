import type { MigrationInterface, QueryRunner } from 'typeorm';

export class PublisherGrants1795219200000 implements MigrationInterface {
  readonly name = 'PublisherGrants1795219200000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE publisher_grants (
        api_key text COLLATE "C" NOT NULL CONSTRAINT publisher_grants_api_key_fkey REFERENCES api_keys,
        publisher text COLLATE "C" NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT publisher_grants_pkey PRIMARY KEY (api_key, publisher)
      )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE publisher_grants');
  }
}
