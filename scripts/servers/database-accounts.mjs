/**
 * Makes the database and one role for each service in a PostgreSQL of our own.
 * The migrations decide what a role may do.
 * @param {string} adminUrl
 * @param {string} database
 * @param {Record<string, string>} passwords by role
 */
export async function ensureDatabase(adminUrl, database, passwords) {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [database]);
    if (!rowCount) await client.query(`CREATE DATABASE ${client.escapeIdentifier(database)}`);
    for (const [role, password] of Object.entries(passwords)) {
      const known = await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [role]);
      const verb = known.rowCount ? 'ALTER' : 'CREATE';
      await client.query(`${verb} ROLE ${client.escapeIdentifier(role)} LOGIN PASSWORD ${client.escapeLiteral(password)}`);
    }
  } finally {
    await client.end();
  }
}
