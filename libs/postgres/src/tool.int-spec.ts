import { Client, type Pool } from 'pg';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { eventually } from '@app/testing/eventually';
import { databaseProblem, onDatabase } from './tool';

describe('a tool on the database', () => {
  let database: TestDatabase;
  let admin: Client;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    admin = new Client({ connectionString: database.url });
    await admin.connect();
    await admin.query('CREATE TABLE migrations (name text); CREATE TABLE things (id int); INSERT INTO things VALUES (1)');
  });
  afterAll(async () => {
    await admin?.end();
    await database?.drop();
  });
  afterEach(() => jest.restoreAllMocks());

  const settings = () => ({
    name: 'tool-test',
    config: { databaseUrl: database.url, databaseCaFile: undefined, databaseCertFile: undefined, databaseKeyFile: undefined },
    schema: 'public',
    migrations: [],
  });
  const problemOf = (...statements: string[]) =>
    onDatabase(settings(), async (dataSource) => {
      for (const statement of statements) await dataSource.query(statement);
    }).then(() => undefined, databaseProblem);

  it('does not know whether a change was made when its connection is lost', async () => {
    expect(await problemOf('SELECT pg_terminate_backend(pg_backend_pid())')).toMatch(
      /^The database was lost \(57P01\)\. It is not known whether the last change was made\.$/,
    );
  });

  it('says that a statement behind a lock has changed nothing', async () => {
    await admin.query('BEGIN; DELETE FROM things');
    expect(await problemOf(`SET statement_timeout = '50ms'`, 'DELETE FROM things')).toMatch(
      /^A statement took too long, perhaps because of a lock, and has changed nothing\./,
    );
    await admin.query('ROLLBACK');
  });

  it('writes nothing to stdout but its result, and goes on, when its connection is lost in a pause', async () => {
    const write = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    const found = await onDatabase(settings(), async (dataSource) => {
      await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tool-test'`);
      const { master } = dataSource.driver as unknown as { master: Pool };
      await eventually(() => master.totalCount === 0);
      return dataSource.query<unknown>('SELECT 1 AS one');
    });
    expect(found).toEqual([{ one: 1 }]);
    expect(write.mock.calls).toEqual([]);
  });
});
