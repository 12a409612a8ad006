import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Notifications1795132800000 implements MigrationInterface {
  readonly name = 'Notifications1795132800000';

  async up(runner: QueryRunner): Promise<void> {
    // The only table with tenants and organizations. All other tables refer to its number, which also keeps index entries short.
    await runner.query(`
      CREATE TABLE organizations (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT organizations_pkey PRIMARY KEY,
        api_key text COLLATE "C" NOT NULL,
        organization_id text COLLATE "C" NOT NULL,
        CONSTRAINT organizations_api_key_organization_id_key UNIQUE (api_key, organization_id)
      )`);
    await runner.query(`
      CREATE TABLE documents (
        organization bigint NOT NULL CONSTRAINT documents_organization_fkey REFERENCES organizations,
        document_id text COLLATE "C" NOT NULL,
        CONSTRAINT documents_pkey PRIMARY KEY (organization, document_id)
      )`);
    await runner.query(`
      CREATE TABLE notifications (
        organization bigint NOT NULL,
        id text COLLATE "C" NOT NULL,
        "timestamp" bigint NOT NULL,
        document_id text COLLATE "C" NOT NULL,
        location_id text COLLATE "C",
        notify_all boolean NOT NULL,
        size integer NOT NULL,
        fingerprint bytea NOT NULL,
        content json NOT NULL,
        CONSTRAINT notifications_pkey PRIMARY KEY (organization, id)
      )`);
    await runner.query(`
      CREATE INDEX notifications_by_document ON notifications (organization, document_id, "timestamp", id)`);
    await runner.query(`
      CREATE INDEX notifications_by_location ON notifications (organization, document_id, location_id, "timestamp", id)
        WHERE location_id IS NOT NULL`);
    await runner.query(`
      CREATE INDEX notifications_to_all ON notifications (organization, "timestamp", id) WHERE notify_all`);
    await runner.query(`
      CREATE INDEX notifications_to_all_by_document ON notifications (organization, document_id, "timestamp", id) WHERE notify_all`);
    await runner.query(`
      CREATE INDEX notifications_to_all_by_location ON notifications (organization, location_id, "timestamp", id)
        WHERE notify_all AND location_id IS NOT NULL`);
    await runner.query(`
      CREATE INDEX notifications_to_all_by_document_location
        ON notifications (organization, document_id, location_id, "timestamp", id)
        WHERE notify_all AND location_id IS NOT NULL`);
    // Document, location and timestamp are repeated here, so that each filter with a user is one range of one index.
    await runner.query(`
      CREATE TABLE recipients (
        organization bigint NOT NULL,
        user_id text COLLATE "C" NOT NULL,
        "timestamp" bigint NOT NULL,
        notification_id text COLLATE "C" NOT NULL,
        document_id text COLLATE "C" NOT NULL,
        location_id text COLLATE "C",
        CONSTRAINT recipients_pkey PRIMARY KEY (organization, user_id, "timestamp", notification_id)
      )`);
    await runner.query(`
      CREATE INDEX recipients_by_document ON recipients (organization, user_id, document_id, "timestamp", notification_id)`);
    await runner.query(`
      CREATE INDEX recipients_by_location ON recipients (organization, user_id, location_id, "timestamp", notification_id)
        WHERE location_id IS NOT NULL`);
    await runner.query(`
      CREATE INDEX recipients_by_document_location
        ON recipients (organization, user_id, document_id, location_id, "timestamp", notification_id)
        WHERE location_id IS NOT NULL`);
    await runner.query(`
      CREATE TABLE idempotency_keys (
        api_key text COLLATE "C" NOT NULL,
        operation text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        fingerprint bytea NOT NULL,
        notification_id text COLLATE "C" NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT idempotency_keys_pkey PRIMARY KEY (api_key, operation, key)
      )`);
    await runner.query(`CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE idempotency_keys, recipients, notifications, documents, organizations');
  }
}
