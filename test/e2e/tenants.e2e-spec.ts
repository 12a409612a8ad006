import { connect } from 'amqplib';
import { Client } from 'pg';
import { eventually } from '@app/testing/eventually';
import { System, type Operation } from '@app/testing/system/system';
import { copiedMemberships, sourceMemberships } from '@app/testing/database/memberships';
import { COMMON_TABLES, SCHEMAS, TENANT_TABLES } from '@app/tenants/tables';

const ORGANIZATION = { organizationId: 'org' };
const add = (notificationId: string, rest: object) => ({
  ...ORGANIZATION,
  documentId: 'd',
  notificationId,
  actionUser: { userId: 'actor', name: 'Ä "quoted" \\ name' },
  displayHeadlineMessageTemplate: 'Hello',
  ...rest,
});
const STRANGERS = 20_000;
/** Of the table of users: two for the index of the removal, and some for its steps. A scan for each organization would be hundreds. */
const SCANS = 10;
/** Of the tenant. */
const MANY = { recipients: 100_000, documents: 20_000, folders: 2000 };
/** Of the indexes of these tables, read by a removal: each page that has rows of the tenant a few times, and a few for each foreign key. */
const PAGES = { recipients: 5000, documents: 5 * MANY.documents };
/** Everything that can be read of the tenant, in all ways. */
const READS: [Operation, object][] = [
  ['users/get', ORGANIZATION],
  ...['d', 'open'].map((documentId): [Operation, object] => ['notifications/get', { ...ORGANIZATION, documentId }]),
  ...['u', 'gone', 'guest'].flatMap((userId): [Operation, object][] => [
    ['notifications/get', { ...ORGANIZATION, userId }],
    ['notifications/get', { ...ORGANIZATION, userId, locationId: 'l' }],
    ['notifications/get', { ...ORGANIZATION, userId, documentId: 'd' }],
    ['notifications/inbox', { ...ORGANIZATION, userId }],
  ]),
  ['notifications/get', { ...ORGANIZATION, documentId: 'd', notificationIds: ['named', 'deleted'] }],
];

/** An installation with a busy past, another one, and a tenant that moves from the first to the second. */
describe('a tenant', () => {
  let from: System;
  let to: System;
  let sql: Record<'from' | 'to', Client>;
  let own: Record<string, string>;
  let apiKey: string;
  let before: object[];

  const call = async (system: System, operation: Operation, data: object, headers = own) => {
    const { status, body } = await system.call(operation, data, headers);
    expect([operation, status, body.error]).toEqual([operation, 200, undefined]);
    return body.result;
  };
  const readAll = (system: System, headers = own) =>
    // Without the time of the read itself.
    Promise.all(READS.map(async ([operation, data]) => ({ ...(await call(system, operation, data, headers)), asOf: 0 })));
  const tenants = (...words: string[]) =>
    from.program('dist/libs/tenants/src/tenants.main.js', words, { TARGET_DATABASE_URL: to.databaseUrl });
  const refusal = (...words: string[]) =>
    tenants(...words).then(
      () => 'no refusal',
      (error: unknown) => {
        const { code, stderr } = error as { code: number; stderr: string };
        return `${code}: ${stderr.trim()}`;
      },
    );
  /** Whether the copy has all documents, and no membership that has ended. It has only memberships that were asked for. */
  const isCopied = async () => {
    const [source, copy] = [await sourceMemberships(sql.from), await copiedMemberships(sql.from)];
    const { rowCount } = await sql.from.query(
      `SELECT document_id, folder_id, access, version FROM users.documents WHERE version > 0
       EXCEPT SELECT document_id, folder_id, access, version FROM notifications.document_access`,
    );
    return rowCount === 0 && copy.every((one) => source.includes(one));
  };
  /** Rows of an API key in each table that has some. */
  const rowsOf = async (client: Client, key: string) => {
    const counted: Record<string, number> = {};
    for (const schema of SCHEMAS)
      for (const { name, by } of TENANT_TABLES[schema]) {
        const mine =
          by === 'organization' ? `organization IN (SELECT id FROM ${schema}.organizations WHERE api_key = $1)` : `${by} = $1`;
        const { rows } = await client.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${schema}.${name} WHERE ${mine}`, [
          key,
        ]);
        if (rows[0]?.n) counted[`${schema}.${name}`] = rows[0].n;
      }
    return counted;
  };
  /** The same without events that are still to be published. */
  const settledRowsOf = (client: Client, key: string) =>
    eventually(async () => {
      const rows = await rowsOf(client, key);
      return rows['users.outbox'] === undefined && rows['notifications.outbox'] === undefined ? rows : undefined;
    });

  /** Users and recipients of another tenant, and organizations of this one without users. */
  const addStrangers = async () => {
    await sql.from.query(
      `WITH other AS (
         INSERT INTO users.organizations (api_key, organization_id) SELECT 'demo-key', 'other' || n FROM generate_series(1, $1::int) n RETURNING id
       ) INSERT INTO users.users (organization, user_id, initial_generated) SELECT id, 'stranger' || id, true FROM other`,
      [STRANGERS],
    );
    await sql.from.query(
      `INSERT INTO users.organizations (api_key, organization_id) SELECT $1, 'empty' || n FROM generate_series(1, 200) n`,
      [apiKey],
    );
    await sql.from.query(
      `INSERT INTO notifications.recipients SELECT id, 'stranger', extract(epoch FROM now()) * 1000, 'n' || n, 'd'
       FROM notifications.organizations, generate_series(1, $1::int) n WHERE api_key = 'demo-key'`,
      [STRANGERS],
    );
    await sql.from.query(
      `INSERT INTO users.organization_members (organization, user_id) SELECT organization, user_id FROM users.users WHERE user_id LIKE 'stranger%'`,
    );
    await sql.from.query('ANALYZE users.users, users.organization_members, notifications.recipients');
    // An autovacuum reads pages, too.
    for (const table of ['notifications.recipients', 'users.documents'])
      await sql.from.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
    // The reads of the test itself are not to be counted.
    await sql.from.query('SET enable_seqscan = off');
  };
  const touched = async (table: string) => {
    const { rows } = await sql.from.query<Record<'scanned' | 'fetched' | 'inserted' | 'deleted' | 'pages', number>>(
      `SELECT seq_tup_read::int AS scanned, (seq_tup_read + idx_tup_fetch)::int AS fetched, n_tup_ins::int AS inserted,
         n_tup_del::int AS deleted, (idx_blks_read + idx_blks_hit)::int AS pages
       FROM pg_stat_user_tables JOIN pg_statio_user_tables USING (relid) WHERE relid = $1::regclass`,
      [table],
    );
    return rows[0];
  };
  /** Recipients, and documents in folders, of one organization of the tenant. */
  const addMany = async () => {
    const filler = new Client({ connectionString: from.databaseUrl });
    await filler.connect();
    await filler.query(
      `INSERT INTO notifications.recipients SELECT id, 'u', n, 'n' || n, 'd' FROM notifications.organizations, generate_series(1, ${MANY.recipients}) n
       WHERE api_key = $1 AND organization_id = 'org'`,
      [apiKey],
    );
    await filler.query(
      `WITH org AS (SELECT id FROM users.organizations WHERE api_key = $1 AND organization_id = 'org'),
       named AS (INSERT INTO users.folders SELECT id, 'f' || n FROM org, generate_series(1, ${MANY.folders}) n)
       INSERT INTO users.documents SELECT id, 'd' || n, 'f' || 1 + n % ${MANY.folders} FROM org, generate_series(1, ${MANY.documents}) n`,
      [apiKey],
    );
    await filler.end();
    // PostgreSQL tells of the work of a connection after its end.
    await eventually(async () => (await touched('notifications.recipients')).inserted >= MANY.recipients);
    await eventually(async () => (await touched('users.documents')).inserted >= MANY.documents);
  };

  beforeAll(async () => {
    [from, to] = await Promise.all([System.start(), System.start()]);
    sql = {
      from: new Client({ connectionString: from.databaseUrl }),
      to: new Client({ connectionString: to.databaseUrl }),
    };
    await Promise.all(Object.values(sql).map((client) => client.connect()));
    await sql.from.query(`SELECT setval('users.versions', 5000000)`);
    // Organizations have other numbers there.
    for (const organizationId of ['first', 'second', 'org'])
      await call(to, 'users/add', { organizationId, users: [{ userId: 'u' }] }, {});
    await call(to, 'notifications/add', add('named', { notifyUsers: [{ userId: 'u' }] }), {});
    own = await from.createKey();
    apiKey = own['x-svc-api-key'] ?? '';
    for (const headers of [own, {}]) {
      await call(
        from,
        'users/add',
        { ...ORGANIZATION, users: ['u', 'gone'].map((userId) => ({ userId, name: userId })) },
        headers,
      );
      await call(from, 'users/add', { ...ORGANIZATION, folderId: 'f', users: [{ userId: 'guest' }] }, headers);
      await call(from, 'users/add', { ...ORGANIZATION, documentId: 'd', users: [{ userId: 'gone' }] }, headers);
      await call(from, 'documents/set', { ...ORGANIZATION, documentId: 'open', folderId: 'f', access: 'public' }, headers);
      await call(from, 'notifications/add', add('named', { notifyUsers: [{ userId: 'u' }, { userId: 'gone' }] }), {
        ...headers,
        'idempotency-key': 'once',
      });
      await call(from, 'notifications/add', add('at', { locationId: 'l', notifyUsers: [{ userId: 'u' }] }), headers);
      await call(from, 'notifications/add', add('deleted', { notifyAll: true }), headers);
      await call(from, 'notifications/add', add('to all', { notifyAll: true, documentId: 'open' }), headers);
      await call(from, 'notifications/delete', { ...ORGANIZATION, notificationIds: ['deleted'] }, headers);
      await call(from, 'notifications/update', { ...ORGANIZATION, notifications: [{ id: 'at', readByUserIds: ['u'] }] }, headers);
      await call(from, 'users/delete', { ...ORGANIZATION, userIds: ['gone'] }, headers);
    }
    await call(from, 'users/data/delete', { userIds: ['erased'] });
    // The copy of memberships follows the events: first all events are published, and then the copy has them.
    await eventually(async () => (await sql.from.query('SELECT FROM users.outbox')).rowCount === 0);
    await eventually(async () => {
      before = await readAll(from);
      const again = JSON.stringify(await readAll(from));
      return JSON.stringify(before) === again && again.includes('"to all"') && (await isCopied());
    });
  });
  afterAll(async () => {
    await Promise.all(Object.values(sql ?? {}).map((client) => client.end()));
    await Promise.all([from, to].map((system) => system?.stop()));
  });

  it('has no row in a table that the tool does not know', async () => {
    for (const schema of SCHEMAS) {
      const { rows } = await sql.from.query<{ name: string }>(
        'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1',
        [schema],
      );
      const known = [...TENANT_TABLES[schema].map(({ name }) => name), ...COMMON_TABLES];
      expect(known.sort()).toEqual(rows.map(({ name }) => name));
    }
  });

  it('is neither copied nor removed while somebody may write for it', async () => {
    expect(await refusal('copy', 'nobody')).toBe('1: There is no API key nobody. See npm run keys -- list.');
    expect(await refusal('copy', apiKey)).toMatch(/^1: API key key_\w+ is enabled\. /);
    expect(await refusal('remove', apiKey, '--yes')).toMatch(/^1: API key key_\w+ is enabled\. /);
    expect(await refusal('remove', apiKey)).toMatch(/^2: remove deletes permanently: give --yes\./);
    expect(await rowsOf(sql.to, apiKey)).toEqual({});
    await from.keys('disable', apiKey);
    await sql.from.query(
      `INSERT INTO users.erasures (api_key, user_ids, version, requested_at) VALUES ($1, '{}', 1, 'infinity')`,
      [apiKey],
    );
    const refused = await refusal('copy', apiKey);
    await sql.from.query(`DELETE FROM users.erasures WHERE requested_at = 'infinity'`);
    expect(refused).toMatch(/^1: Not everything is done for this API key: .*erasures under way in users: [12]\b/);
  });

  it('is not copied while events of it have not reached notifications', async () => {
    const goesOn = 'SELECT FROM users.erasures UNION ALL SELECT FROM notifications.erasures WHERE user_ids IS NOT NULL';
    await eventually(async () => (await sql.from.query(goesOn)).rowCount === 0, 30_000);
    await settledRowsOf(sql.from, apiKey);
    // As before they came.
    const move = (sign: '+' | '-') =>
      sql.from.query(`
        UPDATE notifications.document_access SET version = version ${sign} 1 WHERE document_id = 'open';
        UPDATE notifications.erasures SET up_to = up_to ${sign} 60000`);
    await move('-');
    expect(await refusal('copy', apiKey)).toBe(
      '1: Not everything is done for this API key: changes of documents not in notifications yet: 1, ' +
        'erasures not in notifications yet: 1. Try again later.',
    );
    await move('+');
  });

  it('is not copied to where an erasure of it has come after its removal', async () => {
    await sql.to.query(`INSERT INTO notifications.erasures (id, api_key, version, up_to) VALUES ('late', $1, 1, 0)`, [apiKey]);
    expect(await refusal('copy', apiKey)).toMatch(/^1: The target has rows of API key/);
    await sql.to.query('DELETE FROM notifications.erasures WHERE api_key = $1', [apiKey]);
  });

  it('is the same in the other installation, with its tokens, for every read, and reads little of others', async () => {
    await addStrangers();
    const others = await settledRowsOf(sql.to, 'demo-key');
    await settledRowsOf(sql.from, apiKey);
    const tables = ['users.organization_members', 'notifications.recipients'];
    const read = () => Promise.all(tables.map(async (table) => (await touched(table)).fetched));
    const readBefore = await read();
    const copied = await from.tool(['tenants', 'copy', apiKey, '--json'], { TARGET_DATABASE_URL: to.databaseUrl });
    const { rows } = JSON.parse(copied) as { rows: Record<string, number> };
    expect(rows).toMatchObject({ 'users.users': 3, 'users.document_members': 0, 'notifications.notifications': 4 });
    expect((await to.call('users/get', ORGANIZATION, own)).status).toBe(403);
    await to.keys('enable', apiKey);
    await eventually(async () => (await to.call('users/get', ORGANIZATION, own)).status === 200);
    expect(await readAll(to)).toEqual(before);
    expect(await rowsOf(sql.to, 'demo-key')).toEqual(others);
    expect(await refusal('copy', apiKey)).toMatch(/^1: The target has rows of API key/);
    // PostgreSQL tells of the reads of a connection after its end.
    await eventually(async () => (await read()).every((rows, index) => rows > readBefore[index]));
    const ofAll = (await read()).map((rows, index) => rows - readBefore[index]);
    expect(Math.max(...ofAll)).toBeLessThan(STRANGERS);
  });

  it('goes on there: repetitions are known, and changes are newer than what was copied', async () => {
    const again = add('named', { notifyUsers: [{ userId: 'u' }, { userId: 'gone' }] });
    await call(to, 'notifications/add', again, { ...own, 'idempotency-key': 'once' });
    expect(await readAll(to)).toEqual(before);
    const seen = async (userId: string) =>
      ((await call(to, 'notifications/get', { ...ORGANIZATION, userId })) as { data: { id: string }[] }).data.map(({ id }) => id);
    expect(await seen('u')).toContain('to all');
    await call(to, 'documents/set', { ...ORGANIZATION, documentId: 'open', access: 'restricted' });
    await eventually(async () => !(await seen('u')).includes('to all'));
    await call(to, 'users/add', { ...ORGANIZATION, documentId: 'open', users: [{ userId: 'gone' }] });
    await eventually(async () => (await seen('gone')).includes('to all'));
    await call(to, 'users/delete', { ...ORGANIZATION, userIds: ['gone'] });
    await eventually(async () => !(await seen('gone')).includes('to all'));
  });

  it('is not removed when it is enabled while its removal waits', async () => {
    const rows = await rowsOf(sql.from, apiKey);
    await sql.from.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM users.users LIMIT 1');
    const refused = refusal('remove', apiKey, '--yes');
    const waits = `SELECT FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY users_of_%' AND wait_event_type = 'Lock' AND datname = $1`;
    await eventually(async () => (await sql.to.query(waits, [sql.from.database])).rowCount === 1);
    await from.keys('enable', apiKey);
    await sql.from.query('COMMIT');
    expect(await refused).toMatch(/^1: API key key_\w+ is enabled\. /);
    expect(await rowsOf(sql.from, apiKey)).toEqual(rows);
    await from.keys('disable', apiKey);
    await settledRowsOf(sql.from, apiKey);
  });

  it('leaves nothing where it was removed, and others as they are', async () => {
    await addMany();
    const everything = await readAll(from, {});
    const others = await settledRowsOf(sql.from, 'demo-key');
    // PostgreSQL tells of the reads of a connection later: those of this test now, and those of the removal after its end.
    await sql.from.query('SELECT pg_stat_force_next_flush()');
    const tables = ['users.users', 'users.documents', 'notifications.recipients'];
    const touchedEach = () => Promise.all(tables.map((table) => touched(table)));
    const [users, documents, recipients] = await touchedEach();
    await tenants('remove', apiKey, '--yes');
    await eventually(async () => (await touched('users.users')).deleted > users.deleted);
    const [usersNow, documentsNow, recipientsNow] = await touchedEach();
    expect(usersNow.scanned - users.scanned).toBeLessThan(SCANS * STRANGERS);
    expect(recipientsNow.scanned - recipients.scanned).toBeLessThan(STRANGERS);
    expect(recipientsNow.pages - recipients.pages).toBeLessThan(PAGES.recipients);
    expect(documentsNow.pages - documents.pages).toBeLessThan(PAGES.documents);
    expect(await rowsOf(sql.from, apiKey)).toEqual({});
    expect(await rowsOf(sql.from, 'demo-key')).toEqual(others);
    expect(await readAll(from, {})).toEqual(everything);
    expect((await from.call('users/get', ORGANIZATION, own)).status).toBe(401);
    const { rows } = await sql.from.query(`SELECT indexname FROM pg_indexes WHERE indexname LIKE '%\\_of\\_removal'`);
    expect(rows).toEqual([]);
    expect(await refusal('remove', apiKey, '--yes')).toMatch(/^1: There is no API key /);
  });

  it('is removed again when an event of it was on its way', async () => {
    const publisher = await connect(from.amqpUrl);
    const channel = await publisher.createConfirmChannel();
    const data = { ...ORGANIZATION, users: [{ userId: 'late', membership: 6_000_000 }] };
    const event = {
      specversion: '1.0',
      id: 'late',
      source: 'users',
      type: 'user.added.v1',
      time: new Date().toISOString(),
      data,
    };
    const userId = decodeURIComponent(new URL(from.amqpUrl).username);
    const properties = { type: 'user.added.v1', messageId: 'late', userId, headers: { 'x-api-key': apiKey } };
    channel.publish('events.own', 'user.added.v1', Buffer.from(JSON.stringify(event)), properties);
    await channel.waitForConfirms();
    await publisher.close();
    await eventually(async () => (await rowsOf(sql.from, apiKey))['notifications.members'] === 1);
    // The statement of another event, which is not committed when the organization is deleted.
    const other = new Client({ connectionString: from.databaseUrl });
    await other.connect();
    await other.query('BEGIN');
    await other.query(
      `INSERT INTO notifications.members SELECT organization, 'later', level, id FROM notifications.members WHERE user_id = 'late'`,
    );
    const removed = tenants('remove', apiKey, '--yes');
    await eventually(async () => Object.keys(await rowsOf(sql.from, apiKey)).length === 0);
    await other.query('COMMIT');
    await removed;
    expect((await sql.from.query(`SELECT FROM notifications.members WHERE user_id = 'later'`)).rowCount).toBe(0);
    // That of an erasure stores no organization. An update moves its row after the removal has found it.
    await sql.from.query(`INSERT INTO notifications.erasures (id, api_key, version, up_to) VALUES ('late', $1, 1, 0)`, [apiKey]);
    await other.query('BEGIN');
    await other.query('UPDATE notifications.erasures SET up_to = 1 WHERE api_key = $1', [apiKey]);
    const again = tenants('remove', apiKey, '--yes');
    const waits = `SELECT FROM pg_stat_activity WHERE query LIKE 'DELETE FROM notifications.erasures%' AND wait_event_type = 'Lock'`;
    await eventually(async () => (await sql.to.query(waits)).rowCount === 1);
    await other.query('COMMIT');
    await other.end();
    await again;
    expect(await rowsOf(sql.from, apiKey)).toEqual({});
  });
});
