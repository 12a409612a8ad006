import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Erasures, complete or not. A complete one refuses old events for a week, and has no user ids. */
export class Erasures1796428800000 implements MigrationInterface {
  readonly name = 'Erasures1796428800000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE erasures (
        id text COLLATE "C" CONSTRAINT erasures_pkey PRIMARY KEY,
        api_key text COLLATE "C" NOT NULL,
        user_ids text[],
        organization_ids text[],
        version bigint NOT NULL,
        up_to bigint NOT NULL,
        received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        stage text COLLATE "C" NOT NULL DEFAULT 'people',
        at_organization text COLLATE "C" NOT NULL DEFAULT '',
        at_notification text COLLATE "C",
        walked_at timestamptz,
        outbox_seq bigint
      )`);
    await runner.query('CREATE INDEX erasures_by_age ON erasures (received_at)');
    await runner.query(`
      CREATE TABLE erased_users (
        api_key text COLLATE "C" NOT NULL,
        user_hash bytea NOT NULL,
        erasure text COLLATE "C" NOT NULL CONSTRAINT erased_users_erasure_fkey REFERENCES erasures ON DELETE CASCADE,
        CONSTRAINT erased_users_pkey PRIMARY KEY (api_key, user_hash, erasure)
      )`);
    await runner.query('CREATE INDEX erased_users_by_erasure ON erased_users (erasure)');
    // Processes of the version before leave rows of types that they do not know alone, so they read no row without an organization.
    await runner.query(`
      -- squawk-ignore ban-drop-not-null
      ALTER TABLE outbox ADD COLUMN api_key text COLLATE "C", ALTER COLUMN organization DROP NOT NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DELETE FROM outbox WHERE organization IS NULL');
    await runner.query('ALTER TABLE outbox DROP COLUMN api_key, ALTER COLUMN organization SET NOT NULL');
    await runner.query('DROP TABLE erased_users, erasures');
  }
}
