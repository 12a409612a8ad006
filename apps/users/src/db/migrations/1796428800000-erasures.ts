import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Erasures that are not complete. A row is gone when its users are. */
export class Erasures1796428800000 implements MigrationInterface {
  readonly name = 'Erasures1796428800000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE erasures (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT erasures_pkey PRIMARY KEY,
        api_key text COLLATE "C" NOT NULL,
        user_ids text[] NOT NULL,
        organization_ids text[],
        version bigint NOT NULL,
        requested_at timestamptz NOT NULL,
        at_user_id text COLLATE "C" NOT NULL DEFAULT '',
        at_organization bigint NOT NULL DEFAULT 0,
        outbox_seq bigint
      )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE erasures');
  }
}
