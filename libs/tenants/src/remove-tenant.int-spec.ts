import { Client } from 'pg';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { earlierTransactions } from './remove-tenant';

const MOST_MS = 500;

describe('the wait for earlier transactions', () => {
  const role = `limited_${Math.random().toString(36).slice(2, 8)}`;
  const clients: Client[] = [];
  let database: TestDatabase;
  let admin: Client;

  const connect = async (username?: string) => {
    const url = new URL(database.url);
    if (username) url.username = url.password = username;
    const client = new Client({ connectionString: url.href });
    clients.push(client);
    await client.connect();
    return client;
  };
  const waitOf = async (client: Client) => {
    const since = performance.now();
    await earlierTransactions(client, MOST_MS);
    return performance.now() - since;
  };

  beforeAll(async () => {
    database = await createEmptyDatabase();
    admin = await connect();
    await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD '${role}'`);
  });
  afterAll(async () => {
    for (const client of clients.toReversed()) {
      if (client === admin) await admin.query(`DROP ROLE ${role}`);
      await client.end();
    }
    await database?.drop();
  });

  it('ends with them, and counts those that the account may not see', async () => {
    const other = await connect();
    expect(await waitOf(admin)).toBeLessThan(MOST_MS);
    await other.query('BEGIN');
    expect(await waitOf(admin)).toBeGreaterThanOrEqual(MOST_MS);
    expect(await waitOf(await connect(role))).toBeGreaterThanOrEqual(MOST_MS);
  });
});
