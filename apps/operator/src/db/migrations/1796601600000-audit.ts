import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Audit1796601600000 implements MigrationInterface {
  readonly name = 'Audit1796601600000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE audit (
        seq bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT audit_pkey PRIMARY KEY,
        batch uuid NOT NULL,
        begun_at timestamptz NOT NULL DEFAULT now(),
        operator text NOT NULL,
        address text NOT NULL,
        action text NOT NULL,
        target text NOT NULL,
        detail text NOT NULL,
        outcome text,
        ended_at timestamptz
      )`);
    await runner.query('CREATE INDEX audit_batch_idx ON audit (batch)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE audit');
  }
}
