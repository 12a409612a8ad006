import { Logger } from '@nestjs/common';
import { Client, type PoolClient } from 'pg';
import type { DataSource } from 'typeorm';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { createDataSource } from '../connections/data-source';
import { OutboxListener } from './outbox-listener';

const ROLE = 'outbox_listener_test';

describe(OutboxListener.name, () => {
  let database: TestDatabase;
  let dataSource: DataSource;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    const settings = { name: 'test', url: database.url, schema: 'public', migrations: [], poolSize: 2 };
    dataSource = await createDataSource(settings).initialize();
  });
  afterEach(() => jest.restoreAllMocks());
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  it('leaves no listener on a connection on which it could not listen', async () => {
    // No channel has this name.
    await expect(new OutboxListener(dataSource, '', () => undefined).connection()).rejects.toMatchObject({ code: '42601' });
    const runner = dataSource.createQueryRunner();
    const client = (await runner.connect()) as PoolClient;
    expect(client.listenerCount('notification')).toBe(0);
    await runner.release();
  });

  it('leaves the only connection for which there is room to statements, and listens when there is room for two', async () => {
    const admin = new Client({ connectionString: database.url });
    await admin.connect();
    await admin.query(`DROP ROLE IF EXISTS ${ROLE}; CREATE ROLE ${ROLE} LOGIN CONNECTION LIMIT 1`);
    const url = Object.assign(new URL(database.url), { username: ROLE, password: '' }).href;
    const settings = { name: ROLE, url, schema: 'public', migrations: [], poolSize: 2 };
    const limited = await createDataSource(settings).initialize();
    const listener = new OutboxListener(limited, 'channel', () => undefined);
    const warned = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    expect((await listener.connection()) === limited).toBe(true);
    expect(warned.mock.calls).toEqual([[{ msg: expect.stringMatching(/^nothing listens .* one connection only$/) as string }]]);
    // The pool finds out that there is no room for the second one, and opens no other for a while.
    await Promise.all([limited.query('SELECT 1 AS one'), limited.query('SELECT 1 AS one')]);
    expect(warned).toHaveBeenCalledTimes(2);
    expect((await listener.connection()) === limited).toBe(true);
    expect(warned).toHaveBeenCalledTimes(2);
    await limited.query('SELECT 1 AS one');
    await admin.query(`ALTER ROLE ${ROLE} CONNECTION LIMIT 2`);
    expect((await listener.connection()) === limited).toBe(false);
    await limited.query('SELECT 1 AS one');
    await listener.stop();
    await limited.destroy();
    await admin.query(`DROP ROLE ${ROLE}`);
    await admin.end();
  });
});
