import { Logger } from '@nestjs/common';
import { Client, type PoolClient } from 'pg';
import type { DataSource } from 'typeorm';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { createDataSource } from './data-source';
import { FailoverPool } from './failover-pool';

const ROLE = 'failover_pool_test';
const ROOM = 2;
const POOL_SIZE = 4;

describe(FailoverPool.name, () => {
  let database: TestDatabase;
  let dataSource: DataSource;

  const asAdministrator = async (sql: string): Promise<void> => {
    const client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(sql);
    await client.end();
  };
  /** As many connections at a time. */
  const hold = async (connections: number): Promise<void> => {
    const runners = Array.from({ length: connections }, () => dataSource.createQueryRunner());
    try {
      await Promise.all(runners.map((runner) => runner.connect()));
    } finally {
      await Promise.all(runners.map((runner) => runner.release()));
    }
  };
  const ask = (): Promise<unknown> =>
    Promise.all(Array.from({ length: 4 * POOL_SIZE }, () => dataSource.query('SELECT 1 AS one')));

  beforeEach(async () => {
    database = await createEmptyDatabase();
    await asAdministrator(`DROP ROLE IF EXISTS ${ROLE}; CREATE ROLE ${ROLE} LOGIN CONNECTION LIMIT ${ROOM}`);
    const url = new URL(database.url);
    url.username = ROLE;
    url.password = '';
    // The timers of the pool are faked, and those of sockets are not.
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance', 'Date'] });
    const settings = { name: ROLE, url: url.href, schema: 'public', migrations: [], poolSize: POOL_SIZE };
    dataSource = await createDataSource(settings).initialize();
  });
  afterEach(async () => {
    jest.useRealTimers();
    jest.restoreAllMocks();
    await dataSource.destroy();
    await asAdministrator(`DROP ROLE ${ROLE}`);
    await database.drop();
  });

  it('lets statements wait for the open connections while the server has room for no more', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    await hold(ROOM);
    await ask();
    expect(warn.mock.calls).toEqual([[{ msg: 'the database has no room for more connections', open: ROOM, of: POOL_SIZE }]]);
  });

  it('says that the pool is full when none of the open connections is free in time', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const runners = Array.from({ length: ROOM }, () => dataSource.createQueryRunner());
    await Promise.all(runners.map((runner) => runner.connect()));
    const asked = dataSource.query('SELECT 1 AS one').catch((error: unknown) => (error as Error).message);
    while (warn.mock.calls.length === 0) await new Promise(setImmediate);
    await jest.advanceTimersByTimeAsync(2000);
    await Promise.all(runners.map((runner) => runner.release()));
    expect(await asked).toBe('timeout exceeded when trying to connect');
  });

  it('does not wait for a connection that listens, which is never free', async () => {
    const listening = dataSource.createQueryRunner();
    const client = (await listening.connect()) as PoolClient;
    client.on('notification', () => undefined);
    await asAdministrator(`ALTER ROLE ${ROLE} CONNECTION LIMIT 1`);
    await expect(dataSource.query('SELECT 1 AS one')).rejects.toMatchObject({ code: '53300' });
    await asAdministrator(`ALTER ROLE ${ROLE} CONNECTION LIMIT ${ROOM}`);
    await dataSource.query('SELECT 1 AS one');
    await listening.release();
  });

  it('opens more when there is room again', async () => {
    jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    await hold(ROOM);
    await ask();
    await asAdministrator(`ALTER ROLE ${ROLE} CONNECTION LIMIT ${POOL_SIZE}`);
    jest.advanceTimersByTime(10_000);
    await hold(POOL_SIZE);
  });

  it('says that the server has no room when there is not even one connection', async () => {
    await dataSource.destroy();
    await asAdministrator(`ALTER ROLE ${ROLE} CONNECTION LIMIT 0`);
    await expect(dataSource.initialize()).rejects.toMatchObject({ code: '53300' });
    await asAdministrator(`ALTER ROLE ${ROLE} CONNECTION LIMIT ${ROOM}`);
    await dataSource.initialize();
  });
});
