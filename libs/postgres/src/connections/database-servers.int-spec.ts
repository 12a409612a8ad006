import { Client } from 'pg';
import type { DataSource } from 'typeorm';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { databaseObstacle } from '../connect';
import { createDataSource } from './data-source';
import { isDatabaseAway, NoServer } from '../errors';
import { queryPrepared } from './query-prepared';

const POOL_SIZE = 5;
const INSERT = { name: 'insert', text: `INSERT INTO things DEFAULT VALUES RETURNING server` };

describe('a pool with two servers', () => {
  let first: PrivateServer;
  let second: PrivateServer;
  let dataSource: DataSource;

  beforeAll(async () => {
    // A commit waits for a standby only when it is safe.
    [first, second] = await Promise.all([PrivateServer.start('postgres'), PrivateServer.start('postgres', '--fsync')]);
    for (const server of [first, second]) {
      await on(server, `CREATE TABLE things (server text DEFAULT current_setting('port'))`);
    }
  });
  afterAll(() => Promise.all([first?.remove(), second?.remove()]));
  beforeEach(async () => {
    await acceptWrites(first, false);
    await acceptWrites(second, true);
    dataSource = newDataSource();
  });
  afterEach(() => dataSource.destroy());

  const newDataSource = () => {
    const url = first.url.replace(/:\d+\//, (port) => `${port.slice(0, -1)},127.0.0.1:${portOf(second)}/`);
    return createDataSource({ name: 'servers test', url, schema: 'public', migrations: [], poolSize: POOL_SIZE });
  };
  /** @returns the port of the server that has stored a row */
  const write = async (): Promise<string | undefined> => {
    const rows = await queryPrepared<{ server: string }>(dataSource, INSERT, [], Date.now() + 5000);
    return rows[0]?.server;
  };
  const openAll = () => Promise.all(Array.from({ length: POOL_SIZE }, () => dataSource.query('SELECT pg_sleep(0.1)')));
  /** Processes of the server for the connections of the pool. */
  const backendsOf = async (server: PrivateServer, state = '%'): Promise<number[]> => {
    const ofPool = `SELECT pid FROM pg_stat_activity WHERE application_name = 'servers test' AND state LIKE '${state}'`;
    return (await on<{ pid: number }>(server, ofPool)).map(({ pid }) => pid);
  };
  const connectionsTo = async (server: PrivateServer): Promise<number> => (await backendsOf(server)).length;

  it('uses the one that accepts writes', async () => {
    await dataSource.initialize();
    await openAll();
    expect(await write()).toBe(portOf(second));
    expect(await connectionsTo(first)).toBe(0);
  });

  it('goes on at the other one after a kill, as soon as that accepts writes', async () => {
    await dataSource.initialize();
    await openAll();
    await second.order('kill');
    // The end of each connection arrives on its own.
    await eventually(async () => {
      const error = await refusal(write());
      expect(isDatabaseAway(error)).toBe(true);
      return error instanceof NoServer;
    });
    expect(await databaseObstacle(dataSource)).toBe('is unreachable (server 1: accepts no writes, server 2: ECONNREFUSED)');
    await acceptWrites(first, true);
    expect(await write()).toBe(portOf(first));
    await second.order('start');
    await openAll();
    expect(await connectionsTo(second)).toBe(0);
  });

  it('leaves one that has become read-only, with all connections and without a row', async () => {
    await dataSource.initialize();
    await openAll();
    const before = await rowsOf(second);
    await acceptWrites(first, true);
    await acceptWrites(second, false);
    expect(await refusal(write())).toMatchObject({ code: '25006' });
    // Long before the pool would close them because they are idle.
    await eventually(async () => (await connectionsTo(second)) === 0, 8000);
    expect(await write()).toBe(portOf(first));
    expect(await rowsOf(second)).toEqual(before);
  });

  it('gives up a frozen one with all its connections', async () => {
    await dataSource.initialize();
    await openAll();
    await second.order('pause');
    try {
      await acceptWrites(first, true);
      expect(isDatabaseAway(await refusal(write()))).toBe(true);
      let prompt = 0;
      for (let one = 0; one < POOL_SIZE; one++) {
        const from = performance.now();
        const server = await write().catch(() => undefined);
        if (server === portOf(first) && performance.now() - from < 2000) prompt++;
      }
      // A machine that stands still may spoil one.
      expect(prompt).toBeGreaterThanOrEqual(POOL_SIZE - 1);
    } finally {
      await second.order('resume');
    }
  });

  it('stays at one whose commit waits for a standby that is away, with the other connections', async () => {
    await dataSource.initialize();
    await openAll();
    const before = await backendsOf(second);
    await waitForStandbys(second, true);
    try {
      // The setting takes effect a moment after sessions see it.
      await eventually(async () => isDatabaseAway(await refusal(write())));
      const idle = await backendsOf(second, 'idle');
      expect(idle).toHaveLength(POOL_SIZE - 1);
      expect(before).toEqual(expect.arrayContaining(idle));
      const [{ pid }] = await dataSource.query<{ pid: number }[]>('SELECT pg_backend_pid() AS pid');
      expect(idle).toContain(pid);
    } finally {
      await waitForStandbys(second, false);
    }
  });

  it('connects within the time of one server while the other one is frozen', async () => {
    await first.order('pause');
    try {
      // A busy machine delays some of them.
      await eventually(async () => {
        if (dataSource.isInitialized) await dataSource.destroy();
        // It does not know yet which one answers.
        dataSource = newDataSource();
        const from = performance.now();
        await dataSource.initialize();
        return performance.now() - from < 2000;
      }, 10_000);
    } finally {
      await first.order('resume');
    }
  });
});

const refusal = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    (outcome) => outcome,
    (error: unknown) => error,
  );

const portOf = ({ url }: PrivateServer): string => new URL(url).port;

const rowsOf = (server: PrivateServer) => on(server, 'SELECT count(*) FROM things');

/** `default_transaction_read_only` shows a client what a standby shows, without a second program. */
const acceptWrites = (server: PrivateServer, allowed: boolean): Promise<void> =>
  change(server, 'default_transaction_read_only', allowed ? 'off' : 'on');

/** There are no standbys, so a commit that waits for one does not end. */
const waitForStandbys = (server: PrivateServer, wanted: boolean): Promise<void> =>
  change(server, 'synchronous_standby_names', wanted ? '*' : '');

async function change(server: PrivateServer, setting: string, value: string): Promise<void> {
  await on(server, `ALTER SYSTEM SET ${setting} = '${value}'`);
  await on(server, 'SELECT pg_reload_conf()');
  await eventually(async () => {
    const [row] = await on<{ now: string }>(server, `SELECT current_setting('${setting}') AS now`);
    return row?.now === value;
  });
}

async function on<Row>(server: PrivateServer, statement: string): Promise<Row[]> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  try {
    return (await client.query(statement)).rows as Row[];
  } finally {
    await client.end();
  }
}
