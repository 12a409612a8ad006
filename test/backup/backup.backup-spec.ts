import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { documentedSql, withParameters } from '@app/testing/database/documented-sql';
import { eventually } from '@app/testing/eventually';
import { report } from '@app/testing/report';
import { keepCalling } from '@app/testing/system/keep-calling';
import { PrivateServer } from '@app/testing/system/private-server';
import { System } from '@app/testing/system/system';

const CALLERS = 8;
const RATE = 100;
/** Calls before the backup, after it, after the chosen time, and after the last archived piece of the log. */
const [BEFORE, UNTIL, AFTERWARDS] = [300, 300, 300];

interface Added {
  id: string;
  sentAt: number;
  answeredAt: number;
  status: number;
}

/** Columns of the copy that have versions of users. */
const COPIED_VERSIONS = {
  'notifications.members': ['added', 'removed'],
  'notifications.departures': ['version'],
  'notifications.document_access': ['version'],
  'notifications.erasures': ['version'],
};

/** A database that archives its log, the system on it, and what it has answered. */
describe('a backup that is taken under load', () => {
  const archive = mkdtempSync(join(tmpdir(), 'backup-'));
  const added: Added[] = [];
  let database: PrivateServer;
  let brokers: PrivateServer[];
  let chosen: Date;
  let killedAt: number;

  const addTo = async (system: System, id: string): Promise<number> => {
    const sentAt = Date.now();
    const { status } = await system.call('notifications/add', {
      organizationId: 'org',
      documentId: `document ${id.length}`,
      notificationId: id,
      actionUser: { userId: 'actor' },
      displayHeadlineMessageTemplate: 'Hello',
      notifyAll: true,
    });
    added.push({ id, sentAt, answeredAt: Date.now(), status });
    return status;
  };

  beforeAll(async () => {
    brokers = await Promise.all([1, 2].map(() => PrivateServer.start('rabbitmq')));
    database = await PrivateServer.start('postgres', '--fsync', '--archive', archive);
    const system = await System.start({ amqpUrl: brokers[0]?.url, databaseUrl: database.url });
    const sql = new Client({ connectionString: database.url });
    sql.on('error', () => undefined);
    await sql.connect();
    try {
      expect((await system.call('users/add', { organizationId: 'org', users: [{ userId: 'early' }] })).status).toBe(200);
      const end = keepCalling(CALLERS, RATE, (client, call) => addTo(system, `${client} ${call}`));
      await eventually(() => added.length >= BEFORE, 60_000);
      await database.order('backup');
      await eventually(() => added.length >= BEFORE + UNTIL, 60_000);
      const { rows } = await sql.query<{ now: Date }>('SELECT clock_timestamp() AS now');
      chosen = rows[0].now;
      expect((await system.call('users/add', { organizationId: 'org', users: [{ userId: 'late' }] })).status).toBe(200);
      const { rows: archived } = await sql.query<{ last: string }>(
        'SELECT last_archived_wal AS last FROM pg_stat_archiver, pg_switch_wal()',
      );
      await eventually(async () => {
        const { rows: now } = await sql.query<{ last: string }>('SELECT last_archived_wal AS last FROM pg_stat_archiver');
        return now[0]?.last !== archived[0]?.last;
      });
      const seen = added.length;
      await eventually(() => added.length >= seen + AFTERWARDS, 60_000);
      killedAt = Date.now();
      await database.order('kill');
      await end();
    } finally {
      await sql.end().catch(() => undefined);
      await system.stop();
    }
  }, 180_000);
  afterAll(async () => {
    await Promise.all([...brokers, database].map((server) => server.remove()));
    rmSync(archive, { recursive: true, force: true });
  });

  /** Runs a check on a system elsewhere: another broker, and a server with what the archive has. */
  async function restored(until: string | undefined, check: (system: System, sql: Client) => Promise<void>): Promise<void> {
    const options = ['--fsync', '--restore', archive, ...(until ? ['--until', until] : [])];
    const server = await PrivateServer.start('postgres', ...options);
    const sql = new Client({ connectionString: server.url });
    try {
      await sql.connect();
      const system = await System.start({ amqpUrl: brokers[1]?.url, databaseUrl: server.url });
      try {
        await check(system, sql);
      } finally {
        await system.stop();
      }
    } finally {
      await sql.end();
      await server.remove();
    }
  }

  const idsIn = async (sql: Client): Promise<string[]> =>
    (await sql.query<{ id: string }>('SELECT id FROM notifications.notifications')).rows.map(({ id }) => id);

  it('restores to a chosen time: everything answered before, nothing sent after, and the copy is right again', async () => {
    // Settings are read before the names of time zones: no Z.
    await restored(chosen.toISOString().replace('T', ' ').replace('Z', '+00'), async (system, sql) => {
      const ids = await idsIn(sql);
      const stored = new Set(ids);
      expect(ids).toHaveLength(stored.size);
      const lost = added.filter(
        ({ id, answeredAt, status }) => status === 200 && answeredAt < chosen.getTime() && !stored.has(id),
      );
      const unasked = added.filter(({ id, sentAt }) => sentAt > chosen.getTime() && stored.has(id));
      expect({ lost, unasked }).toEqual({ lost: [], unasked: [] });
      const seenBy = async (userId: string) => {
        const { body } = await system.call('notifications/get', { organizationId: 'org', userId, pageSize: 1 });
        return (body.result?.data as unknown[]).length;
      };
      expect(await Promise.all(['early', 'late'].map(seenBy))).toEqual([1, 0]);
      // The copy as after a restore of one schema alone: it takes itself for complete, and is not.
      await sql.query('DELETE FROM notifications.members');
      expect(await seenBy('early')).toBe(0);
      await system.tool(['copy', 'rebuild']);
      await eventually(async () => (await seenBy('early')) === 1);
      const again = added.find(({ id }) => stored.has(id))!.id;
      expect(await addTo(system, again)).toBe(200);
      expect((await idsIn(sql)).length).toBe(stored.size);
    });
  });

  it('moves the versions ahead of a newer copy, so that later changes count there, and finds people to erase again', async () => {
    await restored(undefined, async (system, sql) => {
      const seen = async () => {
        const { body } = await system.call('notifications/get', { organizationId: 'org', userId: 'early', pageSize: 1 });
        return (body.result?.data as unknown[]).length;
      };
      await system.call('documents/set', { organizationId: 'org', documentId: 'document', access: 'public' });
      await system.call('users/add', { organizationId: 'org', documentId: 'document', users: [{ userId: 'other' }] });
      await system.call('users/delete', { organizationId: 'org', documentId: 'document', userIds: ['other'] });
      await system.call('users/add', { organizationId: 'org', users: [{ userId: 'other' }] });
      await system.call('users/delete', { organizationId: 'org', userIds: ['other'] });
      await system.call('users/data/delete', { userIds: ['somebody'] });
      const columns = Object.entries(COPIED_VERSIONS).flatMap(([table, names]) => names.map((name) => ({ table, name })));
      const greatestIn = async ({ table, name }: { table: string; name: string }) =>
        Number((await sql.query<{ version: string }>(`SELECT max(${name}) AS version FROM ${table}`)).rows[0].version);
      await eventually(async () => (await Promise.all(columns.map(greatestIn))).every((version) => version > 0));
      expect(await seen()).toBe(1);
      let newest = 0;
      for (const { table, name } of columns) {
        newest += 5_000_000;
        // A live membership stays live.
        const only = name === 'added' ? 'WHERE added > removed' : name === 'removed' ? 'WHERE removed > added' : '';
        await sql.query(`UPDATE ${table} SET ${name} = $1 ${only}`, [newest]);
        await sql.query(documentedSql('versions'));
        const { rows } = await sql.query<{ last: string }>('SELECT last_value AS last FROM users.versions');
        expect(Number(rows[0].last)).toBe(newest + 1_000_000);
      }
      expect(await seen()).toBe(1);
      await system.call('users/delete', { organizationId: 'org', userIds: ['early'] });
      await eventually(async () => (await seen()) === 0);
      // Added again, as in a database from before the erasure.
      await system.call('users/add', { organizationId: 'org', users: [{ userId: 'somebody' }] });
      const { rows: erased } = await sql.query<{ user_hash: Buffer }>('SELECT user_hash FROM notifications.erased_users');
      const hashes = erased.map(({ user_hash: hash }) => hash);
      const { rows: found } = await sql.query<{ user_id: string }>(
        withParameters(documentedSql('erased-ids'), ['key', 'hashes']),
        ['demo-key', hashes],
      );
      expect(found).toEqual([{ user_id: 'somebody' }]);
    });
  });

  it('restores as much as was archived, and loses no more than the last seconds', async () => {
    await restored(undefined, async (_system, sql) => {
      const stored = new Set(await idsIn(sql));
      const lost = added.filter(({ id, answeredAt, status }) => status === 200 && answeredAt < killedAt && !stored.has(id));
      const answered = added.filter(({ status }) => status === 200).length;
      const seconds = lost.length > 0 ? (killedAt - Math.min(...lost.map(({ answeredAt }) => answeredAt))) / 1000 : 0;
      report({ answered, lost: lost.length, seconds: Number(seconds.toFixed(1)) });
      // archive_timeout is 5 s, and a piece takes a moment to be copied.
      expect(seconds).toBeLessThan(10);
    });
  });
});
