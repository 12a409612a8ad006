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

  const connect = async (name: string) => {
    const client = new Client({ connectionString: database.url, application_name: name });
    clients.push(client);
    await client.connect();
    return client;
  };

  it('names the session that holds the lock, and not one that waits for it with others behind', async () => {
    const [admin, holder, ...waiting] = await Promise.all(['admin', 'analyst', 'migration', 'service'].map(connect));
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
          `^\\d+ statements wait for a lock of session ${pid} of \\w+ \\(analyst, idle in transaction, \\d+ s\\)$`,
        ) as string,
        action: `end it: SELECT pg_terminate_backend(${pid})`,
      });
      return true;
    }, 20_000);
    await holder.query('ROLLBACK');
    await Promise.all(done);
  });
});
