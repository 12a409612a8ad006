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
