import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { connect, type ChannelModel } from 'amqplib';
import { Client } from 'pg';
import { eventually } from '@app/testing/eventually';
import { documentedSql } from '@app/testing/database/documented-sql';
import { copiedMemberships, sourceMemberships } from '@app/testing/database/memberships';
import { keepCalling } from '@app/testing/system/keep-calling';
import { notification } from '@app/testing/system/notification';
import { System, type Operation } from '@app/testing/system/system';

const USERS = Array.from({ length: 60 }, (_, index) => `u${index}`);

/** `npm run copy -- rebuild` repairs the copy from its source. */
describe('the copy of memberships', () => {
  let system: System;
  let sql: Client;
  let broker: ChannelModel;

  beforeAll(async () => {
    system = await System.start();
    sql = new Client({ connectionString: system.databaseUrl });
    await sql.connect();
    broker = await connect(system.amqpUrl);
  });
  afterAll(async () => {
    await broker?.close();
    await sql?.end();
    await system?.stop();
  });

  const add = async (userIds: string[], where: { documentId?: string; folderId?: string } = {}) => {
    const users = userIds.map((userId) => ({ userId }));
    expect((await system.call('users/add', { organizationId: 'org', users, ...where })).status).toBe(200);
  };
  const notifyAll = async (documentId: string) => {
    const toAll = notification({ documentId, notificationId: `to all of ${documentId}`, notifyAll: true });
    const { status } = await system.call('notifications/add', toAll);
    expect(status).toBe(200);
  };
  const seen = async (userId: string) => {
    const { status, body } = await system.call('notifications/get', { organizationId: 'org', userId });
    expect(status).toBe(200);
    return (body.result?.data as { metadata: { documentId: string } }[]).map(({ metadata }) => metadata.documentId).sort();
  };
  const rows = async (query: string) => (await sql.query<{ row: string }>(query)).rows.map(({ row }) => row);
  /** Memberships and documents in both databases. */
  const source = async () => [
    ...(await sourceMemberships(sql)),
    ...(await rows(`SELECT document_id || '/' || coalesce(folder_id, '') || '/' || access || '/' || version AS row
      FROM users.documents WHERE version > 0 ORDER BY 1`)),
  ];
  const copy = async () => [
    ...(await copiedMemberships(sql)),
    ...(await rows(`SELECT document_id || '/' || coalesce(folder_id, '') || '/' || access || '/' || version AS row
      FROM notifications.document_access ORDER BY 1`)),
  ];

  it('is rebuilt while calls run, and no read misses a visible notification', async () => {
    await add(USERS);
    await add(['u1', 'u2', 'u3'], { folderId: 'f' });
    await add(['u4', 'u5'], { documentId: 'secret' });
    const remove = (userIds: string[], where = {}) => system.call('users/delete', { organizationId: 'org', userIds, ...where });
    expect((await remove(['u6', 'u7'])).status).toBe(200);
    expect((await remove(['u3'], { folderId: 'f' })).status).toBe(200);
    await add(['u7']);
    const channel = await broker.createConfirmChannel();
    for (const body of [
      { organizationId: 'org', documentId: 'secret', access: 'restricted' },
      { organizationId: 'org', documentId: 'filed', access: 'restricted', folderId: 'f' },
    ])
      channel.publish('commands', 'documents.set.v1', Buffer.from(JSON.stringify(body)), {
        headers: { 'x-api-key': 'demo-key' },
      });
    await channel.waitForConfirms();
    for (const documentId of ['plain', 'secret', 'filed']) await notifyAll(documentId);
    await eventually(async () => (await copy()).join() === (await source()).join());
    const members = USERS.filter((userId) => userId !== 'u6');
    for (const userId of members) expect(await seen(userId)).toContain('plain');
    expect(await seen('u6')).toEqual([]);

    // Damage: missing rows, an invented membership, and numbers that are too great, as after the users database was restored to an older state.
    await sql.query(
      `DELETE FROM notifications.members WHERE user_id IN ('u1', 'u4') OR user_id > 'u3' AND user_id NOT IN ('u6', 'u7')`,
    );
    await sql.query(`UPDATE notifications.members SET removed = added + 1000000 WHERE user_id = 'u2'`);
    await sql.query(`UPDATE notifications.members SET added = added + 1000000 WHERE user_id = 'u3'`);
    await sql.query(`UPDATE notifications.departures SET version = version + 1000000 WHERE user_id = 'u7'`);
    await sql.query(`DELETE FROM notifications.departures WHERE user_id = 'u6'`);
    await sql.query(
      `INSERT INTO notifications.members SELECT organization, 'u9', 'document', 'secret' FROM notifications.members LIMIT 1`,
    );
    await sql.query(
      `UPDATE notifications.document_access SET version = version + 1000, access = 'public' WHERE document_id = 'filed'`,
    );

    const tool = spawn(process.execPath, ['scripts/tool.mjs', 'copy', 'rebuild', '--json'], {
      env: { PATH: process.env.PATH, DATABASE_URL: system.databaseUrl },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const exited = once(tool, 'exit') as Promise<[number]>;
    const result = text(tool.stdout);
    const asking = new Promise<void>((resolve) => {
      createInterface({ input: tool.stderr }).on('line', (line) => {
        if ((JSON.parse(line) as { note: string }).note.startsWith('From now on')) resolve();
      });
    });
    await Promise.race([asking, exited]);

    const missed: string[] = [];
    const endReaders = keepCalling(3, 300, async (reader, index) => {
      const userId = members[(20 * reader + index) % members.length];
      const sees = await seen(userId);
      const expected = ['plain', ...(['u4', 'u5'].includes(userId) ? ['secret'] : [])];
      if (!expected.every((documentId) => sees.includes(documentId))) missed.push(`${userId} ${sees.join()}`);
      if (userId === 'u9' && sees.includes('secret')) missed.push('u9 sees secret');
    });
    const endWriter = keepCalling(1, 100, (_, index) => add([`new${index}`], index % 2 ? { folderId: 'f' } : {}));
    const [code] = await exited;
    await seen('u9');
    expect(await seen('u6')).toEqual([]);
    await Promise.all([endReaders(), endWriter()]);
    expect({ code, missed }).toEqual({ code: 0, missed: [] });
    const { events, rows: published } = JSON.parse(await result) as { events: number; rows: Record<string, number> };
    expect(events).toBeGreaterThan(0);
    expect(published).toMatchObject({ documents: 2, 'document members': 2 });
    await eventually(async () => (await copy()).join() === (await source()).join());
  });

  /** The tables of users get older, those of notifications do not, as when one of two databases is restored. */
  describe('newer than its source, which was restored to an older dump,', () => {
    const PEOPLE = ['stays', 'leaves', 'comes', 'moves', 'files'];

    const call = async (operation: Operation, data: object) => {
      const { status, body } = await system.call(operation, { organizationId: 'restored', ...data });
      expect([operation, data, status]).toEqual([operation, data, 200]);
      return body.result!;
    };
    const add = (userIds: string[], level = {}) => call('users/add', { ...level, users: userIds.map((userId) => ({ userId })) });
    const remove = (userIds: string[], level = {}) => call('users/delete', { ...level, userIds });
    const seenBy = async (userId: string) =>
      ((await call('notifications/get', { userId })).data as { id: string }[]).map(({ id }) => id).sort();
    const seen = async () => Object.fromEntries(await Promise.all(PEOPLE.map(async (userId) => [userId, await seenBy(userId)])));
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
});
