/**
 * Creates the database in a PostgreSQL of our own. Set-up creates the roles of the services.
 * @param {string} adminUrl
 * @param {string} database
 */
export async function ensureDatabase(adminUrl, database) {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [database]);
    if (!rowCount) await client.query(`CREATE DATABASE ${client.escapeIdentifier(database)}`);
  } finally {
    await client.end();
  }
}
