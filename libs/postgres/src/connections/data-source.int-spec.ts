import type { DataSource } from 'typeorm';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { createDataSource } from './data-source';

let database: TestDatabase;
let dataSource: DataSource | undefined;

beforeAll(async () => void (database = await createEmptyDatabase()));
afterEach(() => dataSource?.destroy());
afterAll(() => database?.drop());

it.each([true, false])('does not let the server compile statements, with generic plans %s', async (genericPlans) => {
  const settings = { name: 'data source test', url: database.url, schema: 'public', entities: [], migrations: [], poolSize: 1 };
  dataSource = await createDataSource({ ...settings, genericPlans }).initialize();
  expect(await dataSource.query('SHOW jit')).toEqual([{ jit: 'off' }]);
});
