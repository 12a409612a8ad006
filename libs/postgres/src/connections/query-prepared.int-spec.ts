import { Client } from 'pg';
import type { DataSource } from 'typeorm';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { createDataSource } from './data-source';
import { isDatabaseAway, isTransient } from '../errors';
import { queryPrepared } from './query-prepared';

let database: TestDatabase;
let dataSource: DataSource;

beforeAll(async () => {
  database = await createEmptyDatabase();
  const settings = { name: 'query prepared test', url: database.url, schema: 'public', migrations: [] };
  dataSource = await createDataSource({ ...settings, poolSize: 1 }).initialize();
});

afterAll(async () => {
  await dataSource?.destroy();
  await database?.drop();
});

const timeout = (deadline?: number) =>
  queryPrepared<{ statement_timeout: string }>(dataSource, { name: 'timeout', text: 'SHOW statement_timeout' }, [], deadline);
const SLEEP = { name: 'sleep', text: 'SELECT pg_sleep(60)' };
const outcomeOf = async (work: Promise<unknown>) => (await Promise.allSettled([work]))[0];

describe('queryPrepared', () => {
  it('keeps the usual timeout without a deadline, or with one far away', async () => {
    expect(await timeout()).toEqual([{ statement_timeout: '2s' }]);
    expect(await timeout(Date.now() + 60_000)).toEqual([{ statement_timeout: '2s' }]);
  });

  it('shortens the timeout near the deadline, and restores the connection afterwards', async () => {
    expect(await timeout(Date.now() + 1000)).toEqual([{ statement_timeout: '400ms' }]);
    const late = await outcomeOf(queryPrepared(dataSource, SLEEP, [], Date.now() + 1000));
    expect(late.status === 'rejected' && isTransient(late.reason)).toBe(true);
    expect(await timeout()).toEqual([{ statement_timeout: '2s' }]);
  });

  it('reports the outcome of the statement also when the timeout cannot be restored, and gives up the connection', async () => {
    const { query } = Client.prototype as unknown as { query: (this: Client, ...args: unknown[]) => unknown };
    const restored = jest.spyOn(Client.prototype, 'query').mockImplementation(function (this: Client, ...args: unknown[]) {
      const [text, ...rest] = args;
      // As after a pause of the server: the shortened timeout ends it.
      return query.call(this, text === 'RESET statement_timeout' ? SLEEP.text : text, ...rest);
    });
    const pid = (deadline?: number) =>
      queryPrepared<{ pid: number }>(dataSource, { name: 'pid', text: 'SELECT pg_backend_pid() AS pid' }, [], deadline);
    const first = await pid(Date.now() + 1000);
    restored.mockRestore();
    expect(first).toEqual([{ pid: expect.any(Number) as number }]);
    expect(await pid()).not.toEqual(first);
    expect(await timeout()).toEqual([{ statement_timeout: '2s' }]);
  });

  it.each([undefined, 1000])('reports a lost connection, with %s ms left', async (left) => {
    const query = jest.spyOn(Client.prototype, 'query');
    const work = outcomeOf(queryPrepared(dataSource, SLEEP, [], left && Date.now() + left));
    while (!query.mock.calls.some(([config]) => (config as unknown as { text?: string }).text === SLEEP.text))
      await new Promise(setImmediate);
    const client = query.mock.contexts.at(-1) as unknown as { connection: { stream: { destroy(): void } } };
    query.mockRestore();
    client.connection.stream.destroy();
    const lost = await work;
    expect(lost.status === 'rejected' && isDatabaseAway(lost.reason)).toBe(true);
  });
});
