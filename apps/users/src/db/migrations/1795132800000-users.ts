import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Users1795132800000 implements MigrationInterface {
  readonly name = 'Users1795132800000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE api_keys (
        key text COLLATE "C" CONSTRAINT api_keys_pkey PRIMARY KEY,
        name text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        disabled_at timestamptz
      )`);
    await runner.query(`
      CREATE TABLE tokens (
        id text COLLATE "C" CONSTRAINT tokens_pkey PRIMARY KEY,
        api_key text COLLATE "C" NOT NULL CONSTRAINT tokens_api_key_fkey REFERENCES api_keys,
        hash bytea NOT NULL CONSTRAINT tokens_hash_key UNIQUE,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz,
        revoked_at timestamptz
      )`);
    await runner.query('CREATE INDEX tokens_by_api_key ON tokens (api_key)');
    // The only table with tenants and organizations. All other tables refer to its number.
    await runner.query(`
      CREATE TABLE organizations (
        id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT organizations_pkey PRIMARY KEY,
        api_key text COLLATE "C" NOT NULL CONSTRAINT organizations_api_key_fkey REFERENCES api_keys,
        organization_id text COLLATE "C" NOT NULL,
        CONSTRAINT organizations_api_key_organization_id_key UNIQUE (api_key, organization_id)
      )`);
    await runner.query(`
      CREATE TABLE folders (
        organization bigint NOT NULL CONSTRAINT folders_organization_fkey REFERENCES organizations,
        folder_id text COLLATE "C" NOT NULL,
        CONSTRAINT folders_pkey PRIMARY KEY (organization, folder_id)
      )`);
    await runner.query(`
      CREATE TABLE documents (
        organization bigint NOT NULL CONSTRAINT documents_organization_fkey REFERENCES organizations,
        document_id text COLLATE "C" NOT NULL,
        CONSTRAINT documents_pkey PRIMARY KEY (organization, document_id)
      )`);
    await runner.query(`
      CREATE TABLE users (
        organization bigint NOT NULL CONSTRAINT users_organization_fkey REFERENCES organizations,
        user_id text COLLATE "C" NOT NULL,
        name text,
        email text,
        initial text,
        initial_generated boolean NOT NULL,
        CONSTRAINT users_pkey PRIMARY KEY (organization, user_id)
      )`);
    await runner.query(`
      CREATE TABLE organization_members (
        organization bigint NOT NULL,
        user_id text COLLATE "C" NOT NULL,
        CONSTRAINT organization_members_pkey PRIMARY KEY (organization, user_id),
        CONSTRAINT organization_members_user_fkey FOREIGN KEY (organization, user_id) REFERENCES users
      )`);
    await runner.query(`
      CREATE TABLE folder_members (
        organization bigint NOT NULL,
        folder_id text COLLATE "C" NOT NULL,
        user_id text COLLATE "C" NOT NULL,
        CONSTRAINT folder_members_pkey PRIMARY KEY (organization, folder_id, user_id),
        CONSTRAINT folder_members_folder_fkey FOREIGN KEY (organization, folder_id) REFERENCES folders,
        CONSTRAINT folder_members_user_fkey FOREIGN KEY (organization, user_id) REFERENCES users
      )`);
    await runner.query(`
      CREATE TABLE document_members (
        organization bigint NOT NULL,
        document_id text COLLATE "C" NOT NULL,
        user_id text COLLATE "C" NOT NULL,
        CONSTRAINT document_members_pkey PRIMARY KEY (organization, document_id, user_id),
        CONSTRAINT document_members_document_fkey FOREIGN KEY (organization, document_id) REFERENCES documents,
        CONSTRAINT document_members_user_fkey FOREIGN KEY (organization, user_id) REFERENCES users
      )`);
    await runner.query(`
      CREATE TABLE idempotency_keys (
        api_key text COLLATE "C" NOT NULL,
        operation text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        fingerprint bytea NOT NULL,
        answer json NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT idempotency_keys_pkey PRIMARY KEY (api_key, operation, key)
      )`);
    await runner.query('CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TABLE idempotency_keys, document_members, folder_members, organization_members, users, documents, folders,
        organizations, tokens, api_keys`);
  }
}
