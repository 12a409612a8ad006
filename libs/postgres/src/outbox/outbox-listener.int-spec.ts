import type { PoolClient } from 'pg';
import type { DataSource } from 'typeorm';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { createDataSource } from '../connections/data-source';
import { OutboxListener } from './outbox-listener';

describe(OutboxListener.name, () => {
  let database: TestDatabase;
  let dataSource: DataSource;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    const settings = { name: 'test', url: database.url, schema: 'public', entities: [], migrations: [], poolSize: 1 };
    dataSource = await createDataSource(settings).initialize();
  });
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
});
