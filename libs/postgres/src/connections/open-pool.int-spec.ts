import { Logger } from '@nestjs/common';
import { Client } from 'pg';
import type { DataSource } from 'typeorm';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { connectWhenReady } from '../connect';
import { createDataSource } from './data-source';
import { openPool } from './open-pool';

const POOL_SIZE = 3;
const ROLE = 'open_pool_test';

describe(openPool.name, () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  const never = new AbortController().signal;
  const sourceOf = (url: string) => createDataSource({ name: ROLE, url, schema: 'public', migrations: [], poolSize: POOL_SIZE });

  const asAdministrator = async <T>(sql: string): Promise<T[]> => {
    const client = new Client({ connectionString: database.url });
    await client.connect();
    try {
      return (await client.query(sql)).rows as T[];
    } finally {
      await client.end();
    }
  };
  const open = async () =>
    (await asAdministrator(`SELECT FROM pg_stat_activity WHERE application_name = '${ROLE}' AND wait_event = 'ClientRead'`))
      .length;

  beforeAll(async () => void (database = await createEmptyDatabase()));
  afterAll(() => database.drop());
  afterEach(async () => {
    jest.useRealTimers();
    jest.restoreAllMocks();
    if (dataSource.isInitialized) await dataSource.destroy();
  });

  it('is called at the start of a service: each connection has the plans, and stays open when it is idle', async () => {
    // The timers of the pool are faked, and those of sockets are not.
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance', 'Date'] });
    dataSource = sourceOf(database.url);
    await dataSource.initialize();
    await dataSource.query('CREATE TABLE migrations (id serial, timestamp bigint, name text)');
    await expect(
      connectWhenReady(dataSource, never, [{ name: 'nothing', text: 'SELECT $1::int[]', values: [[]] }]),
    ).resolves.toBe(true);
    jest.advanceTimersByTime(3_600_000);
    expect(await open()).toBe(POOL_SIZE);

    const runners = Array.from({ length: POOL_SIZE }, () => dataSource.createQueryRunner());
    for (const runner of runners)
      expect(await runner.query("SELECT name FROM pg_prepared_statements WHERE name = 'nothing'")).toHaveLength(1);
    await Promise.all(runners.map((runner) => runner.release()));
  });

  it('keeps what the server has room for, and says why there is not more', async () => {
    await asAdministrator(`DROP ROLE IF EXISTS ${ROLE}`);
    await asAdministrator(`CREATE ROLE ${ROLE} LOGIN CONNECTION LIMIT 2`);
    const url = new URL(database.url);
    url.username = ROLE;
    url.password = '';
    dataSource = await sourceOf(url.href).initialize();
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    await openPool(dataSource, [], never);
    const noRoom = { msg: 'the database has no room for more connections', open: 2, of: POOL_SIZE };
    expect(warn.mock.calls).toEqual([[noRoom], ['not every connection is open: all connections of the pool are in use']]);
    expect(await open()).toBe(2);
    await expect(dataSource.query('SELECT 1 AS one')).resolves.toEqual([{ one: 1 }]);
    await dataSource.destroy();
    await asAdministrator(`DROP ROLE ${ROLE}`);
  });

  it('opens no more when the process stops', async () => {
    dataSource = await sourceOf(database.url).initialize();
    await openPool(dataSource, [], AbortSignal.abort());
    expect(await open()).toBe(1);
  });
});
