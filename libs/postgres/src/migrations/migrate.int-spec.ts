import { randomBytes } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { Client } from 'pg';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { connectWhenReady, migrationObstacle } from '../connect';
import { createDataSource } from '../connections/data-source';
import { migrate, MigrationFailed, TableHeld, type MigrationSettings } from './migrate';

/** @param transaction whether it runs in one */
const migration = (name: string, statements: string, transaction?: boolean): new () => MigrationInterface =>
  Object.defineProperty(
    class {
      readonly name = name;
      readonly transaction = transaction;
      up = (runner: QueryRunner) => runner.query(statements);
      down = () => Promise.resolve();
    },
    'name',
    { value: name },
  );
const First1795132800001 = migration(
  'First1795132800001',
  'CREATE TABLE things (id bigint GENERATED ALWAYS AS IDENTITY, name text)',
);
const Second1795132800002 = migration('Second1795132800002', 'ALTER TABLE things ADD COLUMN size integer');
const Third1795132800003 = migration('Third1795132800003', 'CREATE INDEX CONCURRENTLY things_by_name ON things (name)', false);
const Fourth1795132800004 = migration('Fourth1795132800004', 'ALTER TABLE things ADD COLUMN colour text');
const Wrong1795132800005 = migration('Wrong1795132800005', 'ALTER TABLE nothing ADD COLUMN colour text');
const Boxes1795132800006 = migration('Boxes1795132800006', 'CREATE TABLE boxes (id bigint)');
const Both1795132800007 = migration(
  'Both1795132800007',
  'ALTER TABLE things ADD COLUMN box bigint; ALTER TABLE boxes ADD COLUMN colour text',
);

describe(migrate.name, () => {
  let database: TestDatabase;
  const suffix = randomBytes(4).toString('hex');
  const role = (schema: string) => `${schema}_${suffix}`;

  beforeAll(async () => {
    database = await createEmptyDatabase();
  });
  afterAll(async () => {
    await onDatabase(database.url, async (client) => {
      for (const schema of ['one', 'two', 'three', 'held', 'limited'])
        await client.query(`DROP OWNED BY ${role(schema)}; DROP ROLE ${role(schema)}`);
    });
    await database.drop();
  });

  const settings = (schema: string, migrations: (new () => MigrationInterface)[] = [First1795132800001]): MigrationSettings => {
    const service = new URL(database.url);
    service.username = role(schema);
    service.password = 'it\'s "quoted"';
    return { adminUrl: database.url, serviceUrl: service.href, schema, migrations };
  };
  const dataSource = (url: string, migrations: (new () => MigrationInterface)[]) =>
    createDataSource({ name: 'test', url, schema: 'one', migrations, poolSize: 1 });

  it('runs every migration once, when several set-ups start together and when it is repeated', async () => {
    const ran = await Promise.all(Array.from({ length: 4 }, () => migrate(settings('one'))));
    expect(ran.flat()).toEqual(['First1795132800001']);
    await expect(migrate(settings('one'))).resolves.toEqual([]);
  });

  it('says once that it waits for another set-up', async () => {
    const { open: waited, opened: waiting } = gate();
    const onWait = jest.fn((_: string) => waited());
    await onDatabase(database.url, async (other) => {
      await other.query(`SELECT pg_advisory_lock(hashtext('migrate:one'))`);
      const migrating = migrate({ ...settings('one'), onWait });
      await waiting;
      await other.query(`SELECT pg_advisory_unlock(hashtext('migrate:one'))`);
      await expect(migrating).resolves.toEqual([]);
    });
    expect(onWait.mock.calls).toEqual([['another set-up works on it, or the removal of a tenant']]);
  });

  it('says once that it waits for a database that is not up', async () => {
    const onWait = jest.fn();
    const adminUrl = 'postgres://nobody@127.0.0.1:1/none';
    await expect(migrate({ adminUrl, schema: 'one', migrations: [], patienceMs: 1200, onWait })).rejects.toThrow('ECONNREFUSED');
    expect(onWait.mock.calls).toEqual([['the database cannot be used (ECONNREFUSED)']]);
  });

  it('names the migration that fails, and begins with it the next time', async () => {
    const error = await migrate(settings('two', [First1795132800001, Wrong1795132800005])).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(MigrationFailed);
    expect(error).toMatchObject({ code: '42P01', message: expect.stringMatching(/^Wrong1795132800005: relation/) as string });
    await expect(migrate(settings('two', [First1795132800001, Second1795132800002]))).resolves.toEqual(['Second1795132800002']);
  });

  it('passes on an error from before the first migration', async () => {
    const empty = await createEmptyDatabase();
    await onDatabase(empty.url, async (client) => {
      await client.query('CREATE SCHEMA one; CREATE SEQUENCE one.migrations');
    });
    const failing = migrate({ adminUrl: empty.url, schema: 'one', migrations: [First1795132800001] });
    await expect(failing).rejects.toMatchObject({ code: '42P07', message: expect.stringMatching(/^relation/) as string });
    await empty.drop();
  });

  it('lets set-ups that wait keep no other from building an index beside calls', async () => {
    const migrations = [First1795132800001, Second1795132800002, Third1795132800003];
    const ran = await Promise.all(Array.from({ length: 4 }, () => migrate(settings('three', migrations))));
    expect(ran.flat()).toEqual(migrations.map(({ name }) => name));
  });

  it('gives an index the time that it takes, whatever limits the account has, and says that it still runs', async () => {
    await migrate(settings('limited'));
    const onWait = jest.fn<void, [string]>();
    await onDatabase(database.url, async (writer) => {
      const limited = `ALTER DATABASE ${writer.escapeIdentifier(writer.database ?? '')}`;
      await writer.query(`BEGIN; INSERT INTO limited.things (name) VALUES ('x')`);
      const end = async () => {
        await eventually(() => onWait.mock.calls.some(([reason]) => reason.startsWith('Third1795132800003 still runs')));
        await writer.query('COMMIT');
      };
      await onDatabase(database.url, async (client) => {
        await client.query(`${limited} SET statement_timeout = '100ms'`);
        await client.query(`${limited} SET lock_timeout = '50ms'`);
        await client.query(`${limited} SET transaction_timeout = '100ms'`);
        try {
          const migrating = migrate({ ...settings('limited', [First1795132800001, Third1795132800003]), onWait });
          await expect(Promise.all([migrating, end()])).resolves.toEqual([['Third1795132800003'], undefined]);
        } finally {
          await client.query(`${limited} RESET ALL`);
        }
      });
    });
  });

  it('lets calls go on while a transaction holds a table that a migration changes', async () => {
    await migrate(settings('held'));
    const newer = settings('held', [First1795132800001, Second1795132800002]);
    await onDatabase(database.url, async (reader) => {
      await reader.query('BEGIN; SELECT FROM held.things');
      await expect(migrate({ ...newer, patienceMs: 0 })).rejects.toThrow(TableHeld);
      const onWait = jest.fn();
      const migrating = migrate({ ...newer, onWait });
      await onDatabase(newer.serviceUrl ?? '', async (client) => {
        await client.query(`SET statement_timeout = '2s'`);
        const isWaiting = async () =>
          (await client.query(`SELECT FROM pg_locks WHERE NOT granted AND relation = 'held.things'::regclass`)).rowCount === 1;
        for (let call = 0; call < 2; call++) {
          await eventually(isWaiting);
          await client.query(`INSERT INTO held.things (name) VALUES ('x')`);
        }
      });
      await reader.query('COMMIT');
      await expect(migrating).resolves.toEqual(['Second1795132800002']);
      expect(onWait.mock.calls).toEqual([['a transaction holds a table that Second1795132800002 changes']]);
    });
  });

  it('tries again when a transaction that holds a table wants one that it has changed', async () => {
    await migrate(settings('held', [First1795132800001, Second1795132800002, Boxes1795132800006]));
    const both = [First1795132800001, Second1795132800002, Boxes1795132800006, Both1795132800007];
    await onDatabase(database.url, async (reader) => {
      await reader.query('BEGIN; SELECT FROM held.boxes');
      const migrating = migrate(settings('held', both));
      await onDatabase(database.url, async (client) => {
        // Longer than a short attempt: PostgreSQL looks for a deadlock after a second, first in what has waited longest.
        const waits = `SELECT FROM pg_locks WHERE relation = 'held.boxes'::regclass AND clock_timestamp() - waitstart > '0.35 s'`;
        await eventually(async () => (await client.query(waits)).rowCount === 1);
      });
      await reader.query('SELECT FROM held.things; COMMIT');
      await expect(migrating).resolves.toEqual(['Both1795132800007']);
    });
  });

  it('waits long enough for a table that PostgreSQL lets an autovacuum give up', async () => {
    await migrate(settings('held'));
    await onDatabase(database.url, async (vacuum) => {
      await vacuum.query('BEGIN; SELECT FROM held.things');
      const migrating = migrate(settings('held', [First1795132800001, Second1795132800002, Fourth1795132800004]));
      await onDatabase(database.url, async (client) => {
        const isOver = `SELECT FROM pg_locks WHERE NOT granted AND relation = 'held.things'::regclass
          AND clock_timestamp() - waitstart > current_setting('deadlock_timeout')::interval`;
        await eventually(async () => (await client.query(isOver)).rowCount === 1, 30_000, 50);
      });
      await vacuum.query('COMMIT');
      await expect(migrating).resolves.toContain('Fourth1795132800004');
    });
  });

  it('gives each role the rows of its own schema and nothing else', async () => {
    await migrate(settings('one'));
    await migrate(settings('two'));
    await onDatabase(settings('one').serviceUrl ?? '', async (client) => {
      await client.query(`INSERT INTO one.things (name) VALUES ('x')`);
      await expect(client.query('SELECT name FROM one.things')).resolves.toMatchObject({ rows: [{ name: 'x' }] });
      for (const forbidden of [
        'SELECT * FROM two.things',
        'CREATE TABLE one.more (id int)',
        'DROP TABLE one.things',
        'ALTER TABLE one.things ADD COLUMN extra text',
        `INSERT INTO one.migrations (timestamp, name) VALUES (1, 'x')`,
        'CREATE TABLE public.more (id int)',
        'CREATE SCHEMA four',
      ]) {
        await expect(client.query(forbidden)).rejects.toThrow(/permission denied|must be owner/);
      }
    });
  });

  it('lets a service wait while migrations of its build have not run', async () => {
    await migrate(settings('one'));
    const newer = dataSource(settings('one').serviceUrl ?? '', [First1795132800001, Second1795132800002]);
    const said = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const connected = connectWhenReady(newer, new AbortController().signal);
    await eventually(() => said.mock.calls.length > 0);
    await migrate(settings('one', [First1795132800001, Second1795132800002]));
    await expect(connected).resolves.toBe(true);
    expect(said.mock.calls).toEqual([['waiting: 1 migration has not run: run "npm run setup"']]);
    said.mockRestore();
    await newer.destroy();
  });

  it('logs the missing migrations, and stops waiting when the process stops', async () => {
    const empty = await createEmptyDatabase();
    const source = await dataSource(empty.url, [First1795132800001]).initialize();
    await expect(migrationObstacle(source)).resolves.toContain('npm run setup');
    const said = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const stopping = new AbortController();
    const connected = connectWhenReady(source, stopping.signal);
    await eventually(() => said.mock.calls.length > 0);
    stopping.abort();
    await expect(connected).resolves.toBe(false);
    expect(said.mock.calls).toEqual([['waiting: the schema does not exist yet: run "npm run setup"']]);
    said.mockRestore();
    await source.destroy();
    await empty.drop();
  });
});

async function onDatabase(url: string, work: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
