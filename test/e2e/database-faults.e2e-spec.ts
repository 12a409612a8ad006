import { Client } from 'pg';
import { openConnection } from '@app/amqp/connection/open-connection';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { eventually } from '@app/testing/eventually';
import { notification } from '@app/testing/system/notification';
import { System, type HttpAnswer } from '@app/testing/system/system';
import { TcpLink } from '@app/testing/tcp-link';

describe('when the database', () => {
  let database: TestDatabase;
  let link: TcpLink;
  let system: System;
  let sql: Client;
  let number = 0;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    link = await TcpLink.to(database.url);
    system = await System.start({ databaseUrl: link.url });
    sql = new Client({ connectionString: database.url });
    await sql.connect();
  });
  afterAll(async () => {
    await sql?.end();
    await system?.stop();
    await link?.close();
    await database?.drop();
  });

  const add = (id = `n${number++}`) => system.call('notifications/add', notification({ notificationId: id }));
  const get = () => system.call('notifications/get', { organizationId: 'org', documentId: 'doc' });
  const users = () => system.call('users/add', { organizationId: 'org', users: [{ userId: 'u' }] });
  const failure = ({ status, body }: HttpAnswer) => [status, body.error?.status];
  const stored = async (id: string) => (await sql.query('SELECT FROM notifications.notifications WHERE id = $1', [id])).rowCount;

  it('ends every connection, the services connect again and no call is lost', async () => {
    expect((await add()).status).toBe(200);
    for (let round = 0; round < 5; round++) {
      const calls = Array.from({ length: 20 }, () => [add(), get()]).flat();
      await sql.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
      );
      for (const answer of await Promise.all(calls)) expect(answer.status).toBe(200);
    }
  });

  it('falls silent on open connections, calls fail at the latest at their deadline, and then work again', async () => {
    expect((await add()).status).toBe(200);
    link.silence();
    const answers = await Promise.all([add('silent'), users()]);
    for (const answer of answers) expect([200, 503, 504]).toContain(answer.status);
    await eventually(async () => (await add()).status === 200 && (await users()).status === 200 && (await get()).status === 200);
    if (answers[0].status !== 504) expect(await stored('silent')).toBe(answers[0].status === 200 ? 1 : 0);
    for (const service of Object.values(system.services)) await service.untilReady();
  });

  it('takes no connections, and has another name, calls are 503 and not executed, and then work again', async () => {
    const server = new URL(database.url);
    const name = server.pathname.slice(1);
    server.pathname = '/postgres';
    const admin = new Client({ connectionString: server.href });
    await admin.connect();
    const areRefused = async (id: string) => {
      await eventually(async () => (await get()).status === 503);
      expect(failure(await add(id))).toEqual([503, 'UNAVAILABLE']);
    };
    try {
      await sql.end();
      await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
      await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
      await areRefused('closed');
      await admin.query(`ALTER DATABASE ${name} RENAME TO ${name}_renamed`);
      await admin.query(`ALTER DATABASE ${name}_renamed ALLOW_CONNECTIONS true`);
      await areRefused('renamed');
      await admin.query(`ALTER DATABASE ${name}_renamed RENAME TO ${name}`);
    } finally {
      await admin.end();
    }
    await eventually(async () => (await add()).status === 200 && (await get()).status === 200);
    sql = new Client({ connectionString: database.url });
    await sql.connect();
    for (const id of ['closed', 'renamed']) expect(await stored(id)).toBe(0);
  });

  it('is restored without its tables, calls are 503 and not executed, commands wait, and then all is done', async () => {
    expect((await add()).status).toBe(200);
    const broker = await openConnection({ url: system.amqpUrl, name: 'test' });
    const channel = await broker.createConfirmChannel();
    const schemas = ['users', 'notifications'];
    for (const schema of schemas) await sql.query(`ALTER SCHEMA ${schema} RENAME TO ${schema}_elsewhere`);
    try {
      const members = () => system.call('users/get', { organizationId: 'org' });
      await eventually(async () => (await get()).status === 503 && (await members()).status === 503);
      expect(failure(await add('without tables'))).toEqual([503, 'UNAVAILABLE']);
      expect(failure(await users())).toEqual([503, 'UNAVAILABLE']);
      const body = Buffer.from(JSON.stringify({ organizationId: 'org', users: [{ userId: 'waited' }] }));
      channel.publish('commands', 'users.add.v1', body, { headers: { 'x-api-key': 'demo-key' }, persistent: true });
      await channel.waitForConfirms();
    } finally {
      for (const schema of schemas) await sql.query(`ALTER SCHEMA ${schema}_elsewhere RENAME TO ${schema}`);
    }
    await eventually(async () => (await add()).status === 200 && (await get()).status === 200);
    expect(await stored('without tables')).toBe(0);
    await eventually(async () => (await sql.query(`SELECT FROM users.users WHERE user_id = 'waited'`)).rowCount === 1);
    const { users: one, notifications: other } = system.services;
    expect([...one.output, ...other.output].filter((line) => line.includes('a handler failed'))).toEqual([]);
    await broker.close();
  });

  it('keeps a table locked, calls are 503 and not executed', async () => {
    await sql.query('BEGIN; LOCK TABLE notifications.notifications');
    // On a busy machine the deadline of the call may come before that of the statement.
    await eventually(async () => {
      expect(failure(await get())).toEqual([503, 'UNAVAILABLE']);
      return true;
    });
    const id = 'locked';
    const refused = await add(id);
    expect([503, 504]).toContain(refused.status);
    await sql.query('ROLLBACK');
    await eventually(async () => (await add()).status === 200);
    if (refused.status === 503) expect(await stored(id)).toBe(0);
  });
});
