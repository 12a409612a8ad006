import { Client } from 'pg';

/** Every row of every table, as `<schema>.<table> <row>`, that contains a text in any column. Upper and lower case are the same. */
export async function rowsWith(databaseUrl: string, text: string): Promise<string[]> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const tables = await client.query<{ name: string }>(
      `SELECT oid::regclass::text AS name FROM pg_class
       WHERE relkind = 'r' AND relnamespace IN ('users'::regnamespace, 'notifications'::regnamespace)`,
    );
    const found: string[] = [];
    for (const { name } of tables.rows) {
      const { rows } = await client.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t WHERE t::text ILIKE $1`, [
        `%${text}%`,
      ]);
      found.push(...rows.map(({ row }) => `${name} ${row}`));
    }
    return found;
  } finally {
    await client.end();
  }
}
