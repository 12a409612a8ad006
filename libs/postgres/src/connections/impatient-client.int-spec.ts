import { once } from 'node:events';
import { Client } from 'pg';
import { requiredEnv } from '@app/testing/required-env';
import { TcpLink } from '@app/testing/tcp-link';
import { DatabaseServers } from './database-servers';
import { isDatabaseAway } from '../errors';
import { ImpatientClient } from './impatient-client';
import { internalsOf } from './pg-internals';
import { STATEMENT_TIMEOUT_MS } from './statement-timeout';
import { UnlimitedClient } from './unlimited-client';

describe('ImpatientClient', () => {
  let link: TcpLink;
  let client: ImpatientClient;

  const connect = async (silenceMs?: number) => {
    client = new ImpatientClient({ servers: new DatabaseServers(link.url) }, silenceMs);
    await client.connect();
  };
  const giveUp = async (how: 'silence' | 'freeze' = 'silence') => {
    link[how]();
    const error: unknown = await client.query('SELECT 1').catch((reason: unknown) => reason);
    expect(isDatabaseAway(error)).toBe(true);
  };

  beforeEach(async () => {
    link = await TcpLink.to(requiredEnv('TEST_DATABASE_URL'));
  });
  afterEach(() => link.close());

  it('gives up on a silent server, after the server would have ended the statement', async () => {
    await connect();
    const from = performance.now();
    await giveUp();
    expect(performance.now() - from).toBeGreaterThan(STATEMENT_TIMEOUT_MS);
  });

  it('gives up also after idle timeouts', async () => {
    await connect(1000);
    const { stream } = internalsOf(client).connection;
    for (let time = 0; time < 2; time++) {
      await once(stream, 'timeout');
      expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    }
    await giveUp();
  });

  it('waits while parts of an answer arrive', async () => {
    const holder = new Client(link.url);
    await holder.connect();
    await holder.query('SELECT pg_advisory_lock($1, n) FROM generate_series(1, 2) n', [process.pid]);
    await connect(4000);
    let silences = 0;
    internalsOf(client).connection.stream.on('timeout', () => {
      void holder.query('SELECT pg_advisory_unlock($1, $2)', [process.pid, ++silences]);
    });
    const large = `SELECT repeat('x', 20000), pg_advisory_lock($1, n) FROM generate_series(1, 2) n`;
    expect((await client.query(large, [process.pid])).rowCount).toBe(2);
    expect(silences).toBe(2);
    await client.end();
    await holder.end();
  });

  it('waits without a limit while the server works, and gives up when it has stopped', async () => {
    client = new UnlimitedClient({ servers: new DatabaseServers(link.url) }, 2000);
    await client.connect();
    // Two silences.
    expect((await client.query('SELECT 1 AS one FROM pg_sleep(4.5)')).rows).toEqual([{ one: 1 }]);
    await giveUp('freeze');
  });

  it('waits for a server that accepts its login no more, as after a change of the password', async () => {
    const admin = new Client(link.url);
    await admin.connect();
    await admin.query(`CREATE ROLE leaver LOGIN PASSWORD 'secret'`);
    try {
      const url = Object.assign(new URL(link.url), { username: 'leaver', password: 'secret' }).href;
      client = new UnlimitedClient({ servers: new DatabaseServers(url) }, 2000);
      await client.connect();
      await admin.query('ALTER ROLE leaver NOLOGIN');
      expect((await client.query('SELECT 1 AS one FROM pg_sleep(2.5)')).rows).toEqual([{ one: 1 }]);
      await client.end();
    } finally {
      await admin.query('DROP ROLE leaver');
      await admin.end();
    }
  });
});
