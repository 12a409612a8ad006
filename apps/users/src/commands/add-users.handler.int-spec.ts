import { Client } from 'pg';
import type { DataSource } from 'typeorm';
import type { ApiError } from '@app/contracts/error';
import type { AddUsersRequest, AddUsersResult } from '@app/contracts/users.add';
import { createDataSource } from '@app/postgres/data-source';
import { isDatabaseAway } from '@app/postgres/errors';
import { DeliveryContext } from '@app/rabbitmq/delivery-context';
import { createTestDatabase, type TestDatabase } from '@app/testing/database';
import { IdempotencyKeysRepository } from '../db/idempotency-keys.repository';
import { MembersRepository } from '../db/members.repository';
import { ENTITIES, MIGRATIONS, SCHEMA } from '../db/schema';
import { AddUsersHandler } from './add-users.handler';

let database: TestDatabase;
let dataSource: DataSource;
let handler: AddUsersHandler;

beforeAll(async () => {
  database = await createTestDatabase({ [SCHEMA]: MIGRATIONS });
  const settings = { name: 'users test', url: database.url, schema: SCHEMA, entities: ENTITIES, migrations: MIGRATIONS };
  dataSource = await createDataSource({ ...settings, poolSize: 20 }).initialize();
  handler = new AddUsersHandler(new MembersRepository(dataSource), new IdempotencyKeysRepository(dataSource));
  await dataSource.query(`INSERT INTO api_keys (key, name) VALUES ('one', ''), ('two', '')`);
});

afterAll(async () => {
  await dataSource?.destroy();
  await database?.drop();
});

afterEach(async () => {
  jest.restoreAllMocks();
  await dataSource.query('TRUNCATE organizations, idempotency_keys CASCADE');
});

type Call = { apiKey?: string; deadline?: number; idempotencyKey?: string };

function add(request: AddUsersRequest, { apiKey = 'one', ...call }: Call = {}): Promise<AddUsersResult> {
  const delivery = { requestId: 'r', awaited: true, redelivered: false, attempt: 1, pattern: 'users.add.v1' };
  return handler.addUsers(request, new DeliveryContext({ ...delivery, apiKey, ...call }));
}

const users = (...userIds: string[]) => userIds.map((userId) => ({ userId }));
const numbered = (count: number) => Array.from({ length: count }, (_, index) => ({ userId: `u${index}`, name: `User ${index}` }));
const messages = ({ data }: AddUsersResult) => Object.fromEntries(Object.entries(data).map(([id, { message }]) => [id, message]));
async function refusal(call: Promise<unknown>): Promise<unknown> {
  const [outcome] = await Promise.allSettled([call]);
  return outcome.status === 'rejected' ? outcome.reason : undefined;
}

/** The values of one text expression, sorted. */
async function values(sql: string): Promise<string[]> {
  const found = await dataSource.query<Record<string, string>[]>(sql);
  return found.flatMap((row) => Object.values(row)).sort();
}

const membersOf = {
  organization: () =>
    values(`SELECT api_key || '/' || organization_id || '/' || user_id
            FROM organization_members JOIN organizations ON id = organization`),
  folder: () => values(`SELECT folder_id || '/' || user_id FROM folder_members`),
  document: () => values(`SELECT document_id || '/' || user_id FROM document_members`),
};

async function stored(userId: string): Promise<unknown> {
  const [user] = await dataSource.query<unknown[]>('SELECT name, email, initial FROM users WHERE user_id = $1', [userId]);
  return user;
}

/** Everything that is sent to PostgreSQL while `work` runs. */
async function statementsOf(work: () => Promise<unknown>): Promise<number> {
  const query = jest.spyOn(Client.prototype, 'query');
  await work();
  return query.mock.calls.length;
}

/** Runs `work` while another transaction has done `sql`, and ends that when `work` has not. */
async function holding(sql: string, work: (holder: Client) => Promise<void>): Promise<void> {
  const holder = new Client({ connectionString: database.url, options: '-c search_path=users' });
  await holder.connect();
  try {
    await holder.query(`BEGIN; ${sql}`);
    await work(holder);
  } finally {
    await holder.end();
  }
}

const USER_A = `UPDATE users SET email = 'held' WHERE user_id = 'a'`;

/** Resolves with the process ids of the server sessions that wait for a lock, once there are that many. */
async function waitingSessions(holder: Client, count: number): Promise<number[]> {
  for (;;) {
    // Within a transaction the view is a copy of the first look.
    await holder.query('SELECT pg_stat_clear_snapshot()');
    const { rows } = await holder.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    if (rows.length >= count) return rows.map(({ pid }) => pid);
  }
}

describe('users/add: levels', () => {
  it('adds to the organization, which it creates', async () => {
    expect(messages(await add({ organizationId: 'o', users: users('a', 'b') }))).toEqual({ a: 'User added.', b: 'User added.' });
    expect(await membersOf.organization()).toEqual(['one/o/a', 'one/o/b']);
    expect(await membersOf.folder()).toEqual([]);
    expect(await membersOf.document()).toEqual([]);
  });

  it('adds to a folder only', async () => {
    await add({ organizationId: 'o', folderId: 'f', users: users('a') });
    expect(await membersOf.folder()).toEqual(['f/a']);
    expect(await membersOf.organization()).toEqual([]);
    expect(await membersOf.document()).toEqual([]);
  });

  it('adds to a document only, even when a folder is named too', async () => {
    await add({ organizationId: 'o', folderId: 'f', documentId: 'd', users: users('a') });
    expect(await membersOf.document()).toEqual(['d/a']);
    expect(await membersOf.folder()).toEqual([]);
    expect(await membersOf.organization()).toEqual([]);
    expect(await values('SELECT folder_id FROM folders')).toEqual([]);
  });

  it('adds a user of a document to the organization with another call', async () => {
    await add({ organizationId: 'o', documentId: 'd', users: [{ userId: 'a', name: 'Ada' }] });
    expect(messages(await add({ organizationId: 'o', users: users('a') }))).toEqual({ a: 'User added.' });
    expect(await membersOf.organization()).toEqual(['one/o/a']);
    expect(await membersOf.document()).toEqual(['d/a']);
  });

  it('says updated only for a user who was at that level', async () => {
    const levels = [{}, { folderId: 'f' }, { folderId: 'g' }, { documentId: 'f' }, { documentId: 'g' }];
    for (const level of levels) {
      expect(messages(await add({ organizationId: 'o', ...level, users: users('a') }))).toEqual({ a: 'User added.' });
      const again = await add({ organizationId: 'o', ...level, users: users('a', 'b') });
      expect(messages(again)).toEqual({ a: 'User updated.', b: 'User added.' });
    }
  });

  it('keeps two tenants with equal ids apart', async () => {
    await add({ organizationId: 'o', documentId: 'd', users: [{ userId: 'a', name: 'Ada' }] }, { apiKey: 'one' });
    const other = await add({ organizationId: 'o', documentId: 'd', users: [{ userId: 'a', name: 'Bob' }] }, { apiKey: 'two' });
    expect(messages(other)).toEqual({ a: 'User added.' });
    expect(await values('SELECT name FROM users')).toEqual(['Ada', 'Bob']);
    expect(await values('SELECT api_key || organization_id FROM organizations')).toEqual(['oneo', 'twoo']);
  });

  it('refuses an unknown API key and stores nothing', async () => {
    const error = await refusal(add({ organizationId: 'o', users: users('a') }, { apiKey: 'none', idempotencyKey: 'k' }));
    expect(error).toMatchObject({ status: 'UNAUTHENTICATED', message: 'The API key is unknown.' });
    expect(await values('SELECT key FROM idempotency_keys')).toEqual([]);
  });
});

describe('users/add: values', () => {
  const put = (user: object) => add({ organizationId: 'o', users: [{ userId: 'a', ...user }] });

  it('overwrites what was sent and keeps what was not', async () => {
    await put({ name: 'Ada', email: 'ada@x' });
    await put({ email: 'new@x' });
    expect(await stored('a')).toEqual({ name: 'Ada', email: 'new@x', initial: 'A' });
    await put({});
    expect(await stored('a')).toEqual({ name: 'Ada', email: 'new@x', initial: 'A' });
    await put({ name: 'Grace' });
    expect(await stored('a')).toEqual({ name: 'Grace', email: 'new@x', initial: 'G' });
  });

  it('generates the initial when a name comes later, and drops it with the name', async () => {
    await put({});
    expect(await stored('a')).toEqual({ name: null, email: null, initial: null });
    await put({ name: 'Ada' });
    expect(await stored('a')).toMatchObject({ initial: 'A' });
    await put({ name: '' });
    expect(await stored('a')).toMatchObject({ name: '', initial: null });
  });

  it('keeps an initial that was sent until one is sent again', async () => {
    await put({ name: 'Ada' });
    await put({ initial: 'Q' });
    await put({ name: 'Grace' });
    await put({ name: 'Hedy' });
    expect(await stored('a')).toMatchObject({ name: 'Hedy', initial: 'Q' });
    await put({ name: 'Grace', initial: 'Z' });
    expect(await stored('a')).toMatchObject({ initial: 'Z' });
  });

  it('keeps an initial that was sent although it is the one that would be generated', async () => {
    await put({ name: 'Ada' });
    await put({ initial: 'A' });
    await put({ name: 'Grace' });
    expect(await stored('a')).toMatchObject({ name: 'Grace', initial: 'A' });
  });

  it('stores the others when entries fail', async () => {
    const answer = await add({
      organizationId: 'o',
      users: [
        { userId: 'bad', email: 'x' },
        { userId: 'good', email: 'a@x' },
      ],
    });
    expect(answer).toMatchObject({ status: 'success', message: 'User(s) processed, 1 of 2 failed.' });
    expect(answer.data).toMatchObject({ bad: { success: false }, good: { success: true, message: 'User added.' } });
    expect(await membersOf.organization()).toEqual(['one/o/good']);
  });

  it('creates the organization and the document although every entry fails', async () => {
    const answer = await add({ organizationId: 'o', documentId: 'd', users: [{ userId: 'bad', name: '\n' }] });
    expect(answer.message).toBe('User(s) processed, 1 of 1 failed.');
    expect(await values('SELECT organization_id FROM organizations')).toEqual(['o']);
    expect(await values('SELECT document_id FROM documents')).toEqual(['d']);
    expect(await values('SELECT user_id FROM users')).toEqual([]);
  });

  it('stores identifiers of 256 bytes, and names of properties', async () => {
    const long = '😀'.repeat(64);
    await add({ organizationId: long, documentId: long, users: users(long, '__proto__', 'constructor') });
    expect(await values('SELECT user_id FROM users')).toEqual(['__proto__', 'constructor', long].sort());
  });

  it('writes no new version of a user who is sent again unchanged', async () => {
    const version = () => values('SELECT xmin::text || ctid::text FROM users');
    await put({ name: 'Ada', email: 'a@x' });
    const before = await version();
    await put({ name: 'Ada', email: 'a@x' });
    await put({});
    expect(await version()).toEqual(before);
  });
});

describe('users/add: one statement', () => {
  it('adds 1000 users to a document of a new organization', async () => {
    const request = { organizationId: 'o', documentId: 'd', users: numbered(1000) };
    expect(await statementsOf(() => add(request, { idempotencyKey: 'k' }))).toBe(1);
    expect(await membersOf.document()).toHaveLength(1000);
  });
});

describe('users/add: concurrency', () => {
  it('creates an organization once for 50 calls at the same time', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => add({ organizationId: 'o', documentId: 'd', users: users(`u${index}`) })),
    );
    expect(answers.flatMap((answer) => Object.values(messages(answer)))).toEqual(Array(50).fill('User added.'));
    expect(await values('SELECT organization_id FROM organizations')).toEqual(['o']);
    expect(await membersOf.document()).toHaveLength(50);
  });

  it('finds an organization that another transaction creates at this moment', async () => {
    await holding(`INSERT INTO organizations (api_key, organization_id) VALUES ('one', 'o')`, async (holder) => {
      const answers = Promise.all(users('a', 'b', 'c').map((user) => add({ organizationId: 'o', users: [user] })));
      await waitingSessions(holder, 3);
      await holder.query('COMMIT');
      expect((await answers).map(({ message }) => message)).toEqual(Array(3).fill('User(s) processed successfully.'));
    });
    expect(await membersOf.organization()).toEqual(['one/o/a', 'one/o/b', 'one/o/c']);
  });

  it('creates the organization when another transaction does not after all', async () => {
    await holding(`INSERT INTO organizations (api_key, organization_id) VALUES ('one', 'o')`, async (holder) => {
      const answer = add({ organizationId: 'o', users: users('a') });
      await waitingSessions(holder, 1);
      await holder.query('ROLLBACK');
      expect(messages(await answer)).toEqual({ a: 'User added.' });
    });
  });

  it('says added to one of many calls that add the same user', async () => {
    await add({ organizationId: 'o', users: users('other') });
    const answers = await Promise.all(Array.from({ length: 20 }, () => add({ organizationId: 'o', users: users('a') })));
    expect(answers.filter((answer) => messages(answer)['a'] === 'User added.')).toHaveLength(1);
  });

  it('never deadlocks when calls name the same users in opposite orders', async () => {
    const forwards = numbered(300);
    const backwards = forwards.toReversed();
    await add({ organizationId: 'o', users: forwards });
    const call = (index: number) => {
      const given = (index % 2 ? forwards : backwards).map(({ userId }) => ({ userId, name: `${index}` }));
      return add({ organizationId: 'o', ...(index % 3 > 0 && { documentId: 'd' }), users: given });
    };
    // A deadlock would show as one more statement: the one of the call that lost.
    const statements = await statementsOf(() => Promise.all(Array.from({ length: 16 }, (_, index) => call(index))));
    expect(statements).toBe(16);
    expect(await membersOf.document()).toHaveLength(300);
  });
});

describe('users/add: Idempotency-Key', () => {
  const request = {
    organizationId: 'o',
    users: [{ userId: 'a', name: 'Ada' }, { userId: '__proto__' }, { userId: 'bad', name: '\n' }],
  };
  const json = (answer: AddUsersResult) => JSON.stringify(answer);

  it('answers a repetition as the first time, and changes nothing', async () => {
    const first = await add(request, { idempotencyKey: 'k' });
    expect(messages(first)).toMatchObject({ a: 'User added.', bad: 'name must not contain control characters' });
    await add({ organizationId: 'o', users: [{ userId: 'a', name: 'Grace' }] });
    expect(json(await add(request, { idempotencyKey: 'k' }))).toBe(json(first));
    expect(await stored('a')).toMatchObject({ name: 'Grace' });
  });

  it('takes a request for the same whatever the order of its fields', async () => {
    const answers = [
      await add({ organizationId: 'o', users: [{ userId: 'a', name: 'Ada' }] }, { idempotencyKey: 'k' }),
      await add({ users: [{ name: 'Ada', userId: 'a' }], organizationId: 'o' }, { idempotencyKey: 'k' }),
    ];
    expect(answers.map((answer) => messages(answer))).toEqual([{ a: 'User added.' }, { a: 'User added.' }]);
  });

  it('refuses another request under the same key', async () => {
    await add(request, { idempotencyKey: 'k' });
    const error = await refusal(add({ ...request, documentId: 'd' }, { idempotencyKey: 'k' }));
    expect(error).toMatchObject({ status: 'FAILED_PRECONDITION' });
    expect(await membersOf.document()).toEqual([]);
  });

  it('is a matter of the tenant', async () => {
    await add(request, { idempotencyKey: 'k' });
    const other = await add({ organizationId: 'p', users: users('b') }, { idempotencyKey: 'k', apiKey: 'two' });
    expect(messages(other)).toEqual({ b: 'User added.' });
  });

  it('has one effect and one answer for 50 calls at the same time', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => add(request, { idempotencyKey: 'k' })));
    expect(new Set(answers.map(json)).size).toBe(1);
    expect(messages(answers[0])).toMatchObject({ a: 'User added.' });
    expect(await values('SELECT key FROM idempotency_keys')).toEqual(['k']);
  });

  it('waits for a call under the same key that is not done yet, and gives its answer', async () => {
    await add({ organizationId: 'o', documentId: 'd', users: users('a') });
    await holding(USER_A, async (holder) => {
      const answers = Promise.all([1, 2, 3].map(() => add(request, { idempotencyKey: 'k' })));
      await waitingSessions(holder, 3);
      await holder.query('COMMIT');
      expect(new Set((await answers).map(json)).size).toBe(1);
      expect(messages((await answers)[0])).toMatchObject({ a: 'User added.' });
    });
  });

  it('lets one of many different requests win', async () => {
    const calls = Array.from({ length: 20 }, (_, index) =>
      add({ organizationId: 'o', users: users(`u${index}`) }, { idempotencyKey: 'k' }),
    );
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const reasons = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as ApiError] : []));
    expect(new Set(reasons.map((reason) => reason.status))).toEqual(new Set(['FAILED_PRECONDITION']));
    expect(await values('SELECT user_id FROM users')).toHaveLength(1);
  });

  it('deletes some expired keys with each new one, and none that is still promised', async () => {
    await dataSource.query(`
      INSERT INTO idempotency_keys (api_key, operation, key, fingerprint, answer, created_at)
      SELECT 'one', 'users.add', 'old' || n, ''::bytea, '{}'::json, now() - interval '3 days' FROM generate_series(1, 15) AS n
      UNION ALL SELECT 'two', 'users.add', 'day', '', '{}', now() - interval '24 hours 1 minute'`);
    await add(request);
    expect(await values('SELECT key FROM idempotency_keys')).toHaveLength(16);
    await add(request, { idempotencyKey: 'k1' });
    expect(await values('SELECT key FROM idempotency_keys')).toHaveLength(7);
    await add(request, { idempotencyKey: 'k2' });
    expect(await values('SELECT key FROM idempotency_keys')).toEqual(['day', 'k1', 'k2']);
  });
});

describe('users/add: in time or not at all', () => {
  it('does nothing after its deadline', async () => {
    const error = await refusal(add({ organizationId: 'o', users: users('a') }, { deadline: Date.now() - 1 }));
    expect(error).toMatchObject({ status: 'UNAVAILABLE' });
    expect(await values('SELECT organization_id FROM organizations')).toEqual([]);
  });

  it('does nothing when the statement reaches the database too late', async () => {
    const late = new MembersRepository(dataSource).add({
      apiKey: 'one',
      organizationId: 'o',
      level: { of: 'organization' },
      users: [],
      refused: [],
      deadline: Date.now() - 500,
    });
    expect(await late).toEqual({ outcome: 'missed' });
    expect(await values('SELECT organization_id FROM organizations')).toEqual([]);
  });

  it('gives up a statement that would end late, and leaves the pool as it was', async () => {
    await add({ organizationId: 'o', users: users('a') });
    await holding(USER_A, async () => {
      const deadline = Date.now() + 300;
      const error = await refusal(add({ organizationId: 'o', users: [{ userId: 'a', name: 'Late' }] }, { deadline }));
      expect(error).toMatchObject({ status: 'UNAVAILABLE' });
      expect(Date.now()).toBeLessThan(deadline + 1000);
    });
    expect(await stored('a')).toMatchObject({ name: null });
    const timeouts = await Promise.all(Array.from({ length: 20 }, () => values('SHOW statement_timeout')));
    expect(new Set(timeouts.flat())).toEqual(new Set(['2s']));
  });

  it('is stored when there is time, though not much', async () => {
    const answer = await add({ organizationId: 'o', documentId: 'd', users: numbered(10) }, { deadline: Date.now() + 900 });
    expect(answer.message).toBe('User(s) processed successfully.');
  });

  it('lets the loss of the connection through, because the outcome is unknown', async () => {
    await add({ organizationId: 'o', users: users('a') });
    await holding(USER_A, async (holder) => {
      const error = refusal(add({ organizationId: 'o', users: [{ userId: 'a', name: 'Lost' }] }));
      await holder.query('SELECT pg_terminate_backend($1)', await waitingSessions(holder, 1));
      expect(isDatabaseAway(await error)).toBe(true);
    });
    // Delivered again, it is stored: at the latest when the pool has noticed, too.
    while (isDatabaseAway(await refusal(add({ organizationId: 'o', users: [{ userId: 'a', name: 'Lost' }] }))));
    expect(await stored('a')).toMatchObject({ name: 'Lost' });
  });
});
