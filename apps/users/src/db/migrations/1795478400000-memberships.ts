import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Memberships1795478400000 implements MigrationInterface {
  readonly name = 'Memberships1795478400000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE INDEX folder_members_by_user ON folder_members (organization, user_id, folder_id)');
    await runner.query('CREATE INDEX document_members_by_user ON document_members (organization, user_id, document_id)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX document_members_by_user, folder_members_by_user');
  }
}
