import type { MigrationInterface, QueryRunner } from 'typeorm';

const TABLES = {
  notifications: { organization: 1, document_id: 100, location_id: 100 },
  recipients: { organization: 1, user_id: 100, document_id: 100, location_id: 100 },
};

/**
 * Lets plans be made for an organization that has everything, in a hundred documents, for whoever asks: to an average one, among thousands
 * that have next to nothing, any index is as good as another, and a large one would have all of its notifications read for a page.
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

/** What is set counts from the next time on. Not of nothing: PostgreSQL takes a table for larger as long as it knows nothing of it. */
async function analyze(runner: QueryRunner, table: string): Promise<void> {
  const found = (await runner.query(`SELECT 1 FROM ${table} LIMIT 1`)) as unknown[];
  if (found.length > 0) await runner.query(`ANALYZE ${table}`);
}
