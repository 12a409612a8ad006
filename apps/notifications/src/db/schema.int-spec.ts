import type { DataSource } from 'typeorm';
import { DATABASE } from './schema';
import { connectTestDatabase } from '../../test/notifications';

describe('schema notifications', () => {
  let database: Awaited<ReturnType<typeof connectTestDatabase>>;
  let dataSource: DataSource;

  beforeAll(async () => {
    database = await connectTestDatabase();
    [dataSource] = database.dataSources as [DataSource];
  });
  afterAll(() => database.close());

  it('matches the entities', async () => {
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    expect(upQueries.map(({ query }) => query)).toEqual([]);
  });

  it('can be reverted and migrated again', async () => {
    const tables = () =>
      dataSource.query<{ name: string }[]>(
        'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1',
        [DATABASE.schema],
      );
    const before = await tables();
    for (let step = 0; step < DATABASE.migrations.length; step++) await dataSource.undoLastMigration();
    expect(await tables()).toEqual([{ name: 'migrations' }]);
    await dataSource.runMigrations();
    expect(await tables()).toEqual(before);
  });
});
