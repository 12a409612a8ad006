import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { requiredEnv } from '../required-env';

export interface TestDatabase {
  /** Full rights on a database that only this test file uses. */
  url: string;
  drop(): Promise<void>;
}

/** An empty database of its own for a test file. */
export const createEmptyDatabase = (): Promise<TestDatabase> => onServer((client) => created(client));

/**
 * The same as a copy of a database that is made once in a test run.
 * @param template its name, on a server that goes with the run
 * @param prepare brings a new database to what every copy shall be
 */
export function copyDatabase(template: string, prepare: (url: string) => Promise<void>): Promise<TestDatabase> {
  return onServer(async (client) => {
    // One worker makes it, and the others wait; PostgreSQL copies no database that somebody is connected to.
    await client.query('SELECT pg_advisory_lock(hashtext($1))', [template]);
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [template]);
    if (!rowCount) {
      // Of a worker that failed here: its cause must not hide behind "already exists".
      await client.query(`DROP DATABASE IF EXISTS ${template}_in_work WITH (FORCE)`);
      await client.query(`CREATE DATABASE ${template}_in_work`);
      await prepare(urlOf(`${template}_in_work`));
      await client.query(`ALTER DATABASE ${template}_in_work RENAME TO ${template}`);
    }
    return created(client, `TEMPLATE ${template}`);
  });
}

async function created(client: Client, options = ''): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await client.query(`CREATE DATABASE ${name} ${options}`);
  const drop = () => onServer((last) => last.query(`DROP DATABASE ${name} WITH (FORCE)`));
  return { url: urlOf(name), drop: async () => void (await drop()) };
}

function urlOf(database: string): string {
  const url = new URL(requiredEnv('TEST_DATABASE_URL'));
  url.pathname = `/${database}`;
  return url.href;
}

async function onServer<T>(work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: requiredEnv('TEST_DATABASE_URL') });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
