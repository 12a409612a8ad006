import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Outbox1795305600000 implements MigrationInterface {
  readonly name = 'Outbox1795305600000';

  async up(runner: QueryRunner): Promise<void> {
    // Rows live for milliseconds. Frequent vacuums, because reads scan past the dead rows at the front of the index.
    await runner.query(`
      CREATE TABLE outbox (
        seq bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT outbox_pkey PRIMARY KEY,
        id text COLLATE "C" NOT NULL DEFAULT gen_random_uuid()::text,
        type text COLLATE "C" NOT NULL,
        api_key text COLLATE "C" NOT NULL,
        organization_id text COLLATE "C" NOT NULL,
        occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        data json NOT NULL
      ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000)`);
    await runner.query('CREATE SEQUENCE versions CACHE 1');
    // With a default, so that processes of the previous version still work during the deployment.
    await runner.query('ALTER TABLE users ADD COLUMN version bigint NOT NULL DEFAULT 0');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE users DROP COLUMN version');
    await runner.query('DROP SEQUENCE versions');
    await runner.query('DROP TABLE outbox');
  }
}
