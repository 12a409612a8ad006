import { Client } from 'pg';
import { eventually } from '@app/testing/eventually';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { earlierTransactions, removeTenant } from './remove-tenant';
import { SCHEMAS, TENANT_TABLES } from './tables';

const MOST_MS = 500;
/** The columns of all tables that a removal asks for. */
const COLUMNS = `id bigint, key text, api_key text, organization bigint, folder_id text, user_ids text[], disabled_at timestamptz`;

/** A session that builds an index, and waits for a transaction. */
const BUILDING = `SELECT FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock'
  AND datname = current_database()`;

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

describe('the removal of a tenant', () => {
  let database: TestDatabase;
  let admin: Client;

  const connect = async () => {
    const client = new Client({ connectionString: database.url });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  const remove = async (apiKey: string, progress: (line: string) => void = () => undefined) => {
    const client = await connect();
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    try {
      return await removeTenant(client, apiKey, progress);
    } finally {
      await client.end();
      // The end of its session is a moment later, and ends its lock.
      const session = 'SELECT FROM pg_stat_activity WHERE pid = $1';
      await eventually(async () => (await admin.query(session, [rows[0]?.pid])).rowCount === 0);
    }
  };
  const add = async (apiKey: string, id: number) => {
    await admin.query('INSERT INTO users.api_keys (key, disabled_at) VALUES ($1, now())', [apiKey]);
    for (const schema of SCHEMAS)
      await admin.query(`INSERT INTO ${schema}.organizations (id, api_key) VALUES ($1, $2)`, [id, apiKey]);
    await admin.query('INSERT INTO users.users (organization) VALUES ($1)', [id]);
    await admin.query('INSERT INTO notifications.readings (organization) VALUES ($1)', [id]);
  };
  const keys = async () => (await admin.query<{ key: string }>('SELECT key FROM users.api_keys')).rows.map(({ key }) => key);
  const indexes = async () => (await admin.query(`SELECT FROM pg_indexes WHERE schemaname = 'users'`)).rowCount;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    admin = await connect();
    for (const schema of SCHEMAS) {
      await admin.query(`CREATE SCHEMA ${schema}`);
      for (const { name } of TENANT_TABLES[schema]) await admin.query(`CREATE TABLE ${schema}.${name} (${COLUMNS})`);
    }
  });
  afterAll(async () => {
    await admin?.end();
    await database?.drop();
  });

  it('is refused beside another one, and does not disturb it', async () => {
    await add('one', 1);
    await add('two', 2);
    const writer = await connect();
    await writer.query('BEGIN; LOCK TABLE users.users IN ROW EXCLUSIVE MODE');
    const removed = remove('one');
    await eventually(async () => (await admin.query(BUILDING)).rowCount === 1);
    await expect(remove('two')).rejects.toThrow('Another removal runs');
    await writer.end();
    await removed;
    expect([await keys(), await indexes()]).toEqual([['two'], 0]);
  });

  it('makes no index while set-up works, and lets no set-up work while it makes one', async () => {
    await add('three', 4);
    const [setUp, writer] = await Promise.all([connect(), connect()]);
    const isFree = async () =>
      (await setUp.query<{ free: boolean }>(`SELECT pg_try_advisory_lock(hashtext('migrate:users')) AS free`)).rows[0]?.free;
    expect(await isFree()).toBe(true);
    await writer.query('BEGIN; LOCK TABLE users.users IN ROW EXCLUSIVE MODE');
    const said: string[] = [];
    const removed = remove('three', (line) => said.push(line));
    try {
      await eventually(() => said.length > 0);
      expect(said).toEqual(['waiting, because set-up works on the schema users']);
      await setUp.query('SELECT pg_advisory_unlock_all()');
      await eventually(async () => (await admin.query(BUILDING)).rowCount === 1);
      expect(await isFree()).toBe(false);
      await writer.query('COMMIT');
      await removed;
      expect(await isFree()).toBe(true);
    } finally {
      await Promise.all([setUp.end(), writer.end()]);
      await removed;
    }
  });

  it('says why it has failed when its indexes cannot be dropped either, and drops them the next time', async () => {
    await add('lost', 3);
    await admin.query(`
      CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
      CREATE TRIGGER lost BEFORE DELETE ON notifications.readings EXECUTE FUNCTION end_session()`);
    await expect(remove('lost')).rejects.toMatchObject({ code: '57P01' });
    expect(await indexes()).toBe(2);
    await admin.query('DROP FUNCTION end_session CASCADE');
    await expect(remove('nobody')).rejects.toThrow('There is no API key nobody');
    expect(await indexes()).toBe(0);
  });

  it('deletes a row that an update has moved since it was found', async () => {
    await add('moved', 4);
    await admin.query('INSERT INTO users.folders (organization) VALUES (4)');
    const writer = await connect();
    await writer.query('BEGIN; UPDATE users.folders SET folder_id = organization');
    const removed = remove('moved');
    const deleting = `SELECT FROM pg_stat_activity WHERE query LIKE 'DELETE FROM users.folders%' AND wait_event_type = 'Lock'
      AND datname = current_database()`;
    await eventually(async () => (await admin.query(deleting)).rowCount === 1);
    await writer.query('COMMIT');
    await writer.end();
    expect(await removed).toMatchObject({ 'users.folders': 1 });
    expect((await admin.query('SELECT FROM users.folders')).rowCount).toBe(0);
  });
});
