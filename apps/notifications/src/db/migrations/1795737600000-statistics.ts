import type { MigrationInterface, QueryRunner } from 'typeorm';

const TABLES = {
  notifications: { organization: 1, document_id: 100, location_id: 100 },
  recipients: { organization: 1, user_id: 100, document_id: 100, location_id: 100 },
};

/**
 * Sets n_distinct by hand, so that the planner assumes one organization owns all rows in 100 documents. With measured values it plans for the
 * average (tiny) organization, and reads a large one completely for one page.
 */
export class Statistics1795737600000 implements MigrationInterface {
  readonly name = 'Statistics1795737600000';

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
