import type { MigrationInterface, QueryRunner } from 'typeorm';

const TABLES = {
  users: { organization: 1 },
  organization_members: { organization: 1 },
  folder_members: { organization: 1, folder_id: 100 },
  document_members: { organization: 1, document_id: 100 },
};

/**
 * Sets n_distinct by hand, so that the planner assumes one organization owns all rows in 100 folders and documents. With measured values
 * PostgreSQL before 17 plans for the average (tiny) organization, and reads all users of a large one to find a few by their ids.
 */
export class Statistics1796860800000 implements MigrationInterface {
  readonly name = 'Statistics1796860800000';

  async up(runner: QueryRunner): Promise<void> {
    for (const [table, distinct] of Object.entries(TABLES)) {
      const settings = Object.entries(distinct).map(([column, count]) => `ALTER ${column} SET (n_distinct = ${count})`);
      await runner.query(`ALTER TABLE ${table} ${settings.join(', ')}`);
      await analyze(runner, table);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [table, distinct] of Object.entries(TABLES)) {
      const settings = Object.keys(distinct).map((column) => `ALTER ${column} RESET (n_distinct)`);
      await runner.query(`ALTER TABLE ${table} ${settings.join(', ')}`);
      await analyze(runner, table);
    }
  }
}

/** n_distinct takes effect at the next ANALYZE. An empty table is skipped: without statistics PostgreSQL assumes that it is larger. */
async function analyze(runner: QueryRunner, table: string): Promise<void> {
  const found = (await runner.query(`SELECT 1 FROM ${table} LIMIT 1`)) as unknown[];
  if (found.length > 0) await runner.query(`ANALYZE ${table}`);
}
