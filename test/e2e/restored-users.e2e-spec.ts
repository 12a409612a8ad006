import { Client } from 'pg';
import { eventually } from '@app/testing/eventually';
import { documentedSql } from '@app/testing/database/documented-sql';
import { copiedMemberships, sourceMemberships } from '@app/testing/database/memberships';
import { System, type Operation } from '@app/testing/system/system';

const USERS = ['stays', 'leaves', 'comes', 'moves', 'files'];

/** The tables of users get older, those of notifications do not, as when one of two databases is restored. */
describe('users restored to an older dump, beside a newer copy', () => {
  let system: System;
  let sql: Client;

  beforeAll(async () => {
    system = await System.start();
    sql = new Client({ connectionString: system.databaseUrl });
    await sql.connect();
  });
  afterAll(async () => {
    await sql?.end();
    await system?.stop();
  });

  const call = async (operation: Operation, data: object) => {
    const { status, body } = await system.call(operation, { organizationId: 'org', ...data });
    expect([operation, data, status]).toEqual([operation, data, 200]);
    return body.result!;
  };
  const add = (userIds: string[], level = {}) => call('users/add', { ...level, users: userIds.map((userId) => ({ userId })) });
  const remove = (userIds: string[], level = {}) => call('users/delete', { ...level, userIds });
  const seenBy = async (userId: string) =>
    ((await call('notifications/get', { userId })).data as { id: string }[]).map(({ id }) => id).sort();
  const seen = async () => Object.fromEntries(await Promise.all(USERS.map(async (userId) => [userId, await seenBy(userId)])));
  const untilSeen = async (expected: object) => {
    await eventually(async () => JSON.stringify(await seen()) === JSON.stringify(expected), 20_000).catch(() => undefined);
    expect(await seen()).toEqual(expected);
  };
  const untilCopied = () =>
    eventually(async () => (await copiedMemberships(sql)).join() === (await sourceMemberships(sql)).join(), 20_000);

  const tables = async (schema: string) =>
    (
      await sql.query<{ name: string }>(
        `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = $1::regnamespace AND relname <> 'migrations'`,
        [schema],
      )
    ).rows.map(({ name }) => name);

  /** @returns what restores the tables and sequences of users to this moment */
  async function dump(): Promise<() => Promise<void>> {
    await sql.query('CREATE SCHEMA dump');
    const names = await tables('users');
    for (const name of names) await sql.query(`CREATE TABLE dump.${name} AS TABLE users.${name}`);
    const { rows: sequences } = await sql.query<{ name: string; last: string }>(
      `SELECT sequencename AS name, last_value AS last FROM pg_sequences WHERE schemaname = 'users' AND last_value IS NOT NULL`,
    );
    return async () => {
      await sql.query('BEGIN');
      await sql.query('SET LOCAL session_replication_role = replica');
      await sql.query(`TRUNCATE ${names.map((name) => `users.${name}`).join()}`);
      for (const name of names) await sql.query(`INSERT INTO users.${name} OVERRIDING SYSTEM VALUE TABLE dump.${name}`);
      for (const { name, last } of sequences) await sql.query('SELECT setval($1::regclass, $2)', [`users.${name}`, last]);
      await sql.query('COMMIT');
    };
  }

  it('is what reads follow after the steps of docs/operations.md, and later changes are heard', async () => {
    const [folder, document] = [{ folderId: 'folder' }, { documentId: 'secret' }];
    await call('documents/set', { documentId: 'secret', folderId: 'folder', access: 'restricted' });
    for (const documentId of ['plain', 'secret'])
      await call('notifications/add', {
        ...{ documentId, notificationId: documentId, actionUser: { userId: 'actor' }, notifyAll: true },
        displayHeadlineMessageTemplate: 'Hello',
      });
    await add(['stays', 'leaves', 'moves']);
    await add(['files'], folder);
    await untilSeen({ stays: ['plain'], leaves: ['plain'], comes: [], moves: ['plain'], files: ['secret'] });
    await untilCopied();
    const restore = await dump();

    await remove(['leaves']);
    await add(['comes']);
    await add(['stays'], document);
    await remove(['files'], folder);
    for (let times = 0; times < 3; times++) {
      await remove(['moves']);
      await add(['moves']);
    }
    await call('documents/set', { documentId: 'secret', access: 'public' });
    const both = ['plain', 'secret'];
    await untilSeen({ stays: both, leaves: ['secret'], comes: both, moves: both, files: ['secret'] });
    await untilCopied();

    const { gateway, users, notifications } = system.services;
    for (const service of [gateway, users, notifications]) await service.stop('SIGTERM');
    await restore();
    await sql.query(documentedSql('versions'));
    for (const service of [users, notifications, gateway]) await service.start();
    // Without the greater versions the newer copy would take this for an old change.
    await remove(['moves']);
    await eventually(async () => !(await seenBy('moves')).includes('plain'), 20_000).catch(() => undefined);
    expect(await seenBy('moves')).toEqual(['secret']);
    await system.tool(['copy', 'rebuild']);
    await untilSeen({ stays: ['plain'], leaves: ['plain'], comes: [], moves: [], files: ['secret'] });
    await untilCopied();

    await remove(['leaves', 'stays']);
    await add(['comes', 'moves']);
    await remove(['files'], folder);
    await add(['stays'], document);
    await call('documents/set', { documentId: 'secret', access: 'organizationPrivate' });
    await untilSeen({ stays: ['secret'], leaves: [], comes: both, moves: both, files: [] });
    await untilCopied();
  });
});
