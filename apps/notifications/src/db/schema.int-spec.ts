import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { DataSource } from 'typeorm';
import { migrate } from '@app/postgres/migrations/migrate';
import { testMigrations } from '@app/testing/database/schema';
import { DATABASE } from './schema';
import { testDatabase } from '../../test/notifications';

describe('schema notifications', () => {
  const database = testDatabase();
  let dataSource: DataSource;

  beforeAll(() => void ([dataSource] = database.dataSources as [DataSource]));

  it('lets the service delete no organization and no document, because others rely on them', async () => {
    const role = `service_${randomBytes(6).toString('hex')}`;
    const serviceUrl = Object.assign(new URL(database.url), { username: role, password: 'secret' }).href;
    await migrate({ adminUrl: database.url, serviceUrl, ...DATABASE });
    try {
      const denied = await dataSource.query<{ name: string }[]>(
        `SELECT relname AS name FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
         WHERE nspname = $1 AND relkind = 'r' AND NOT has_table_privilege($2, pg_class.oid, 'DELETE') ORDER BY 1`,
        [DATABASE.schema, role],
      );
      expect(denied).toEqual([{ name: 'documents' }, { name: 'migrations' }, { name: 'organizations' }]);
    } finally {
      await dataSource.query(`DROP OWNED BY ${role}`);
      await dataSource.query(`DROP ROLE ${role}`);
    }
  });

  testMigrations(() => dataSource, join(__dirname, 'tables.sql'));
});
