import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Client } from 'pg';
import { databaseProblem } from '@app/postgres/tool';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { migrationsOf, onServer, TenantObstacle } from './tenant-database';

const LIMITS = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout'];

describe('the work on a tenant', () => {
  let database: TestDatabase;
  let admin: Client;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    admin = new Client({ connectionString: database.url });
    await admin.connect();
  });
  afterAll(async () => {
    await admin.end();
    await database.drop();
  });

  it('takes the time that it takes, whatever limits the account has', async () => {
    const { rows: known } = await admin.query<{ name: string }>('SELECT name FROM pg_settings WHERE name = ANY ($1)', [LIMITS]);
    const limited = `ALTER DATABASE ${admin.escapeIdentifier(admin.database ?? '')} SET`;
    for (const { name } of known) await admin.query(`${limited} ${name} = '1min'`);
    const settings = await onServer('DATABASE_URL', { url: database.url, tlsFiles: {} }, async (client) => {
      const { rows } = await client.query<{ name: string; setting: string }>(
        'SELECT name, setting FROM pg_settings WHERE name = ANY ($1)',
        [LIMITS],
      );
      return rows;
    });
    expect(settings).toHaveLength(known.length);
    expect(settings.filter(({ setting }) => setting !== '0')).toEqual([]);
  });

  it('names the variable of a database that cannot be used', async () => {
    const elsewhere = { url: 'postgres://nobody@127.0.0.1:1/none', tlsFiles: {} };
    const failure: unknown = await onServer('TARGET_DATABASE_URL', elsewhere, async () => undefined).catch(
      (error: unknown) => error,
    );
    expect(failure).toBeInstanceOf(TenantObstacle);
    expect(failure).toHaveProperty('message', 'The database of TARGET_DATABASE_URL cannot be used (ECONNREFUSED).');
  });

  it('finds no migrations in a database that set-up has not seen', async () => {
    expect(await onServer('TARGET_DATABASE_URL', { url: database.url, tlsFiles: {} }, migrationsOf)).toBe('');
  });

  it('does not know whether the last change was made when a connection is lost, perhaps in a COMMIT', async () => {
    const target = { url: database.url, tlsFiles: {} };
    const failure: unknown = await onServer('DATABASE_URL', target, () =>
      onServer('TARGET_DATABASE_URL', target, (client) => client.query('SELECT pg_terminate_backend(pg_backend_pid())')),
    ).catch((error: unknown) => error);
    expect(databaseProblem(failure)).toBe('The database was lost (57P01). It is not known whether the last change was made.');
  });

  it('says that the second database cannot be used, and not that something was lost, when it ends each connection', async () => {
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `postgres://nobody@127.0.0.1:${(server.address() as AddressInfo).port}/none`;
    const failure: unknown = await onServer('DATABASE_URL', { url: database.url, tlsFiles: {} }, () =>
      onServer('TARGET_DATABASE_URL', { url, tlsFiles: {} }, async () => undefined),
    ).catch((error: unknown) => error);
    server.close();
    expect(failure).toBeInstanceOf(TenantObstacle);
    expect(failure).toHaveProperty('message', expect.stringContaining('The database of TARGET_DATABASE_URL cannot be used ('));
  });
});
