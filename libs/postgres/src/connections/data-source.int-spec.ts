import { Client } from 'pg';
import type { DataSource } from 'typeorm';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { createDataSource } from './data-source';

let database: TestDatabase;
let dataSource: DataSource | undefined;

beforeAll(async () => void (database = await createEmptyDatabase()));
afterEach(() => dataSource?.destroy());
afterAll(() => database?.drop());

const settings = () => ({
  name: 'data source test',
  url: database.url,
  schema: 'public',
  migrations: [],
  poolSize: 1,
});

it.each([true, false])('does not let the server compile statements, with generic plans %s', async (genericPlans) => {
  dataSource = await createDataSource({ ...settings(), genericPlans }).initialize();
  expect(await dataSource.query('SHOW jit')).toEqual([{ jit: 'off' }]);
});

it('lets the server notice within a minute that this machine is lost', async () => {
  dataSource = await createDataSource(settings()).initialize();
  // The server reads them from its socket.
  const seconds = `SELECT current_setting('tcp_keepalives_idle')::int
    + current_setting('tcp_keepalives_interval')::int * current_setting('tcp_keepalives_count')::int AS seconds`;
  const [{ seconds: most }] = await dataSource.query<[{ seconds: number }]>(seconds);
  expect(most).toBeLessThan(60);
});

it('takes neither the format of times nor isolation nor limits from its account', async () => {
  const given = {
    ...{ DateStyle: 'German', default_transaction_isolation: 'serializable' },
    ...{ idle_session_timeout: '1min', transaction_timeout: '100ms' },
  };
  const client = new Client({ connectionString: database.url });
  await client.connect();
  const names = Object.keys(given);
  const { rows } = await client.query<{ name: keyof typeof given }>('SELECT name FROM pg_settings WHERE name = ANY ($1)', [
    names,
  ]);
  for (const { name } of rows)
    await client.query(`ALTER DATABASE ${client.escapeIdentifier(client.database ?? '')} SET ${name} = '${given[name]}'`);
  await client.end();
  dataSource = await createDataSource(settings()).initialize();
  expect(await dataSource.query(`SELECT 'epoch'::timestamptz AS time FROM pg_sleep(0.2)`)).toEqual([{ time: new Date(0) }]);
  expect(await dataSource.query('SHOW transaction_isolation')).toEqual([{ transaction_isolation: 'read committed' }]);
  expect(await dataSource.query('SHOW idle_session_timeout')).toEqual([{ idle_session_timeout: '0' }]);
});
