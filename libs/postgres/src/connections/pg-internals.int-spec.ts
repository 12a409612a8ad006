import { once } from 'node:events';
import { Socket } from 'node:net';
import { Client } from 'pg';
import { requiredEnv } from '@app/testing/required-env';
import { internalsOf } from './pg-internals';

describe('beneath pg', () => {
  let client: Client;
  beforeEach(async () => {
    client = new Client({ connectionString: requiredEnv('TEST_DATABASE_URL') });
    client.on('error', () => undefined);
    await client.connect();
  });
  afterEach(() => client.end().catch(() => undefined));

  it('a connection ends when its socket is destroyed, and so does its statement', async () => {
    const { stream } = internalsOf(client).connection;
    expect(stream).toBeInstanceOf(Socket);
    const ended = new Promise((resolve) => client.once('end', () => resolve(undefined)));
    const statement = client.query('SELECT pg_sleep(60)').catch((error: unknown) => error);
    stream.destroy(new Error('given up'));
    expect(await statement).toBeInstanceOf(Error);
    await ended;
  });

  it('the socket can have a timeout, which pg does not set', () => {
    expect(internalsOf(client).connection.stream.timeout ?? 0).toBe(0);
  });

  it('a connection reports each error of the server with its code', async () => {
    const reported = once(internalsOf(client).connection, 'errorMessage');
    await client.query('SELECT 1 / 0').catch(() => undefined);
    expect(await reported).toEqual([expect.objectContaining({ code: '22012' })]);
  });

  it('a client is ready for a statement unless one runs', async () => {
    expect(internalsOf(client).readyForQuery).toBe(true);
    const statement = client.query('SELECT 1');
    expect(internalsOf(client).readyForQuery).toBe(false);
    await statement;
    expect(internalsOf(client).readyForQuery).toBe(true);
  });

  it('a client knows the process that serves it', async () => {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    expect(internalsOf(client).processID).toBe(rows[0]?.pid);
  });
});
