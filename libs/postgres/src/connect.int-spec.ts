import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { isUnusable, requireUsable } from './connect';
import { createDataSource } from './connections/data-source';
import { migrate, type MigrationSettings } from './migrations/migrate';
import { sqlState } from './errors';

class Things1795132800001 {
  up = (runner: QueryRunner) => runner.query('CREATE TABLE things (id bigint)');
  down = () => Promise.resolve();
}
class Size1795132800002 {
  up = (runner: QueryRunner) => runner.query('ALTER TABLE things ADD COLUMN size bigint');
  down = () => Promise.resolve();
}

const ROLE = `usable_${randomBytes(4).toString('hex')}`;

describe(isUnusable.name, () => {
  let database: TestDatabase;
  let admin: Client;
  let settings: MigrationSettings;
  let service: DataSource;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    admin = new Client({ connectionString: database.url });
    await admin.connect();
    const url = new URL(database.url);
    [url.username, url.password] = [ROLE, 'secret'];
    const schema = { schema: 'things', migrations: [Things1795132800001, Size1795132800002] };
    settings = { adminUrl: database.url, serviceUrl: url.href, ...schema };
    await migrate(settings);
    service = await createDataSource({ name: 'test', url: url.href, poolSize: 1, ...schema }).initialize();
  });
  afterAll(async () => {
    await service?.destroy();
    await admin?.query(`DROP OWNED BY ${ROLE}; DROP ROLE ${ROLE}`);
    await admin?.end();
    await database?.drop();
  });

  const errorOf = async (statement: string): Promise<unknown> => {
    try {
      await service.query(statement);
    } catch (error) {
      return error;
    }
    throw new Error('The statement has not failed.');
  };

  it.each([
    ['its rights', `REVOKE ALL ON ALL TABLES IN SCHEMA things FROM ${ROLE}`, '42501'],
    ['its schema', 'DROP SCHEMA things CASCADE', '42P01'],
    ['a migration', `ALTER TABLE things.things DROP COLUMN size; DELETE FROM things.migrations WHERE name ~ 'Size'`, '42703'],
  ])('lets commands wait for a database without %s, until set-up has run', async (_, loss, state) => {
    await requireUsable(service);
    await admin.query(loss);
    const error = await errorOf('SELECT size FROM things');
    expect(sqlState(error)).toBe(state);
    expect(await isUnusable(service, error)).toBe(true);
    await expect(requireUsable(service)).rejects.toThrow('run "npm run setup"');
    await migrate(settings);
    await requireUsable(service);
    expect(await isUnusable(service, error)).toBe(false);
  });

  it.each([
    ['a table that no migration makes', 'SELECT FROM nothing', '42P01'],
    ['a right that set-up does not give', 'DELETE FROM migrations', '42501'],
  ])('takes a statement for a bug that wants %s', async (_, statement, state) => {
    const error = await errorOf(statement);
    expect(sqlState(error)).toBe(state);
    expect(await isUnusable(service, error)).toBe(false);
  });
});
