import { Client } from 'pg';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { eventually } from '@app/testing/eventually';
import { Findings } from '../finding';
import { lookAtSessions } from './health';

describe('the look at sessions', () => {
  const clients: Client[] = [];
  let database: TestDatabase;

  beforeAll(async () => void (database = await createEmptyDatabase()));
  afterAll(async () => {
    for (const client of clients) await client.end();
    await database?.drop();
  });

  const connect = async (name: string, { url } = database) => {
    const client = new Client({ connectionString: url, application_name: name });
    clients.push(client);
    await client.connect();
    return client;
  };

  it('names the session that holds the lock, and not one that waits for it with others behind', async () => {
    const [admin, holder, ...waiting] = await Promise.all(
      ['admin', 'analyst', 'migration', 'service'].map((name) => connect(name)),
    );
    await admin.query('CREATE TABLE things ()');
    const { rows } = await holder.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const pid = String(rows[0]?.pid);
    await holder.query('BEGIN; LOCK TABLE things IN SHARE MODE');
    const done = [waiting[0]?.query('BEGIN; ALTER TABLE things ADD n int; COMMIT'), waiting[1]?.query('TABLE things')];
    // Transactions of the services are over by then.
    await eventually(async () => {
      const findings = new Findings('database');
      await lookAtSessions(findings, admin);
      const [found] = findings.all.filter(({ state }) => state === 'problem');
      expect(found).toMatchObject({
        found: expect.stringMatching(
          `^(1 statement waits|2 statements wait) for a lock of session ${pid} of \\w+ \\(analyst, idle in transaction, \\d+ s\\)$`,
        ) as string,
        action: `end it: SELECT pg_terminate_backend(${pid})`,
      });
      return true;
    }, 20_000);
    await holder.query('ROLLBACK');
    await Promise.all(done);
  });

  it('takes no notice of other databases of the server, and of an index that waits for a backup', async () => {
    const other = await createEmptyDatabase();
    const [admin, backup, migration] = await Promise.all(['admin', 'backup', 'migration'].map((name) => connect(name)));
    const [holder, waiting] = await Promise.all(['holder', 'waiting'].map((name) => connect(name, other)));
    await admin.query('CREATE TABLE places (name text)');
    await holder.query('CREATE TABLE things ()');
    await holder.query('BEGIN; LOCK TABLE things');
    await backup.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM places');
    const done = [waiting.query('TABLE things'), migration.query('CREATE INDEX CONCURRENTLY ON places (name)')];
    const names = [database, other].map(({ url }) => new URL(url).pathname.slice(1));
    const locked = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = ANY ($1)`;
    await eventually(async () => (await admin.query(locked, [names])).rowCount === 2);
    const findings = new Findings('database');
    await lookAtSessions(findings, admin);
    expect(findings.all).toMatchObject([{ state: 'ok' }]);
    for (const client of [holder, backup]) await client.query('ROLLBACK');
    await Promise.all(done);
    for (const client of [holder, waiting]) await client.end();
    await other.drop();
  });
});
