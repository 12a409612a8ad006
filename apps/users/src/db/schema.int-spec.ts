import { join } from 'node:path';
import type { DataSource } from 'typeorm';
import { testMigrations } from '@app/testing/database/schema';
import { connectTestDatabase } from '../../test/users';

let dataSource: DataSource;
let close: (() => Promise<void>) | undefined;

beforeAll(async () => {
  ({ dataSource, close } = await connectTestDatabase());
});

afterAll(() => close?.());

describe('schema', () => {
  it('compares text identifiers byte by byte', async () => {
    const columns = await dataSource.query<{ name: string }[]>(
      `SELECT table_name || '.' || column_name AS name FROM information_schema.columns
       WHERE table_schema = 'users' AND table_name <> 'migrations' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`,
    );
    // Only texts for people, which are never keys, have another collation.
    expect(columns.map(({ name }) => name).sort()).toEqual(['api_keys.name', 'users.email', 'users.initial', 'users.name']);
  });

  testMigrations(() => dataSource, join(__dirname, 'tables.sql'));
});
