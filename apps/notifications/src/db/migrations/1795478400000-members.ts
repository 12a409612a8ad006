import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Members1795478400000 implements MigrationInterface {
  readonly name = 'Members1795478400000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE members (
        organization bigint NOT NULL,
        user_id text COLLATE "C" NOT NULL,
        level text COLLATE "C" NOT NULL,
        id text COLLATE "C" NOT NULL,
        CONSTRAINT members_pkey PRIMARY KEY (organization, user_id, level, id)
      )`);
    await runner.query(`
      CREATE TABLE complete_members (
        organization bigint NOT NULL,
        user_id text COLLATE "C" NOT NULL,
        CONSTRAINT complete_members_pkey PRIMARY KEY (organization, user_id)
      )`);
    await runner.query(`
      CREATE TABLE document_access (
        organization bigint NOT NULL,
        document_id text COLLATE "C" NOT NULL,
        folder_id text COLLATE "C",
        access text COLLATE "C" NOT NULL,
        version bigint NOT NULL,
        CONSTRAINT document_access_pkey PRIMARY KEY (organization, document_id)
      )`);
    await runner.query(`
      CREATE INDEX document_access_by_folder ON document_access (organization, folder_id, document_id) WHERE folder_id IS NOT NULL`);
    await runner.query(`
      CREATE INDEX document_access_public ON document_access (organization, document_id) WHERE access = 'public'`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE document_access, complete_members, members');
  }
}
