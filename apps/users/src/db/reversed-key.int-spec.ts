import type { DataSource } from 'typeorm';
import { createDataSource } from '@app/postgres/connections/data-source';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { eventually } from '@app/testing/eventually';
import { MembersRepository } from './members.repository';
import { DATABASE } from './schema';

const LEVELS = [{ of: 'organization' }, { of: 'folder', id: 'f' }, { of: 'document', id: 'd' }] as const;
const REVERSING = DATABASE.migrations.findIndex(({ name }) => name.startsWith('UsersKey'));
/** Numbers of migrations that have run, from those before the first one about the key to all about it. */
const STATES = [0, 1, 2, 3].map((more) => REVERSING + more);

let database: TestDatabase;
let open: DataSource[];

beforeEach(async () => {
  database = await createEmptyDatabase();
  open = [];
});
afterEach(async () => {
  for (const dataSource of open) await dataSource.destroy();
  await database.drop();
});

const connect = async (migrations: number, poolSize = 2) => {
  const settings = { ...DATABASE, migrations: DATABASE.migrations.slice(0, migrations), name: 'users test', url: database.url };
  const dataSource = await createDataSource({ ...settings, poolSize }).initialize();
  open.push(dataSource);
  await dataSource.query('CREATE SCHEMA IF NOT EXISTS users');
  return dataSource;
};

const WAITING = `SELECT FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' AND relation = 'users'::regclass`;

/** The keys of users, the foreign keys to them, and the indexes of users, as PostgreSQL prints them. */
const keys = async (dataSource: DataSource) => {
  const found = await dataSource.query<{ definition: string }[]>(`
    SELECT conname || ' ' || pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE conname ~ '_user_fkey$|^users_pkey$'
    UNION ALL SELECT regexp_replace(indexdef, 'ON .* USING', 'ON users USING') FROM pg_indexes
    WHERE schemaname = 'users' AND tablename = 'users' ORDER BY 1`);
  return found.map(({ definition }) => definition);
};

// Set-up may end between two of them, while processes of the previous version go on.
it('the key of users holds before, between and after the migrations that reverse it', async () => {
  const dataSource = await connect(DATABASE.migrations.length);
  const members = new MembersRepository(dataSource);
  const of = { apiKey: 'one', organizationId: 'org' };
  const ids: string[] = [];
  for (const state of STATES) {
    await (await connect(state)).runMigrations({ transaction: 'each' });
    if (state === STATES[0]) await dataSource.query(`INSERT INTO api_keys (key, name) VALUES ('one', '')`);
    const id = `after ${state}`;
    const refusals = [
      [
        `INSERT INTO users (organization, user_id, initial_generated) SELECT organization, user_id, true FROM users`,
        /^users_(pkey|key)$/,
      ],
      ['DELETE FROM users', /^\w+_members_user_fkey$/],
    ];
    for (const level of LEVELS) {
      const users = [...ids, id].map((userId) => ({ userId, name: userId, initialGenerated: true }));
      expect(await members.add({ ...of, level, users })).toEqual({ outcome: 'stored', added: [id] });
      refusals.push([`UPDATE ${level.of}_members SET user_id = 'nobody'`, new RegExp(`^${level.of}_members_user_fkey$`)]);
    }
    for (const [statement, constraint] of refusals) {
      const refused = dataSource.query(`${statement as string} WHERE user_id = $1`, [id]);
      await expect(refused).rejects.toMatchObject({ driverError: { constraint: expect.stringMatching(constraint) as string } });
    }
    ids.push(id);
  }
  expect(await keys(dataSource)).toEqual([
    'CREATE INDEX users_by_departure ON users USING btree (left_version) WHERE (left_version >= 0)',
    'CREATE INDEX users_departed ON users USING btree (organization, user_id) WHERE (left_version >= 0)',
    'CREATE UNIQUE INDEX users_pkey ON users USING btree (user_id, organization)',
    ...['document', 'folder', 'organization'].map(
      (level) => `${level}_members_user_fkey FOREIGN KEY (organization, user_id) REFERENCES users(organization, user_id)`,
    ),
    'users_pkey PRIMARY KEY (user_id, organization)',
  ]);
});

it('the key is reversed when no transaction holds the tables, and calls go on until then', async () => {
  const dataSource = await connect(STATES[1]);
  await dataSource.runMigrations({ transaction: 'each' });
  await dataSource.query(`INSERT INTO api_keys (key, name) VALUES ('one', '')`);
  const members = new MembersRepository(dataSource);
  const reader = dataSource.createQueryRunner();
  await reader.startTransaction();
  await reader.query('SET LOCAL idle_in_transaction_session_timeout = 0');
  await reader.query('SELECT FROM users');
  const setUp = await connect(STATES[2], 1);
  // As in set-up, which waits for its migrations without a limit.
  await setUp.query('SET statement_timeout = 0');
  const reversing = setUp.runMigrations({ transaction: 'each' });
  // Several attempts of the migration, and calls between them.
  for (let tries = 0; tries < 3; tries++) {
    await eventually(async () => (await dataSource.query<unknown[]>(WAITING)).length === 1);
    const users = [{ userId: `user ${tries}`, initialGenerated: true }];
    const added = await members.add({ apiKey: 'one', organizationId: 'org', level: { of: 'organization' }, users });
    expect(added).toEqual({ outcome: 'stored', added: [`user ${tries}`] });
  }
  await reader.commitTransaction();
  await reader.release();
  expect((await reversing).map(({ name }) => name)).toEqual(['ReversedKey1797033600000']);
});
