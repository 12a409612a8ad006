import { eventually } from '@app/testing/eventually';
import { Caller } from './harness/caller';
import { Cluster } from './harness/cluster';
import { Random, seedOfRun } from './harness/random';
import { lasting } from './harness/run-fault';

const TIMES = 200;
const ORGANIZATION = 'readers';
const READER = 'reader';
/** Key of the advisory lock that a commit waits for. */
const COMMITS = 4711;
/** Longer than the timeout of any statement: a bound on the time between insert and COMMIT would be wrong. */
const HANGING_MS = 12_000;
const FAR_FUTURE = 8.64e15;

interface Inbox {
  data: { id: string; read: boolean }[];
  unread: { count: number; more: boolean };
}

/** "Read up to" beside commits that wait. */
describe('read state', () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let cluster: Cluster;
  let caller: Caller;

  beforeAll(async () => {
    cluster = await Cluster.start(random, { writers: 2 });
    caller = new Caller(cluster);
    await caller.untilDone('users/add', { organizationId: ORGANIZATION, users: [{ userId: READER }, { userId: 'other' }] });
    // A deferred trigger runs at COMMIT: the row is written, and nobody else sees it yet.
    await cluster.sql.query(`
      CREATE FUNCTION notifications.wait_before_commit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN PERFORM pg_advisory_xact_lock_shared(${COMMITS}); RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON notifications.notifications DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION notifications.wait_before_commit()`);
  });
  afterAll(() => cluster?.remove(), 60_000);

  /** Some name the reader, and some reach the reader as a member. */
  const notification = (notificationId: string) => ({
    organizationId: ORGANIZATION,
    documentId: 'document',
    notificationId,
    actionUser: { userId: 'other' },
    displayHeadlineMessageTemplate: 'Hello',
    ...(random.chance(0.5) ? { notifyAll: true } : { notifyUsers: [{ userId: READER }] }),
  });
  const add = (id: string) => caller.untilDone('notifications/add', notification(id));
  const readAll = () =>
    caller.untilDone('notifications/update', { organizationId: ORGANIZATION, userId: READER, readUpTo: FAR_FUTURE });
  const inbox = (filter: object = {}) =>
    caller.untilDone<Inbox>('notifications/inbox', { organizationId: ORGANIZATION, userId: READER, ...filter });

  /** Number of sessions that wait for the lock at their COMMIT. */
  const waiting = async () =>
    Number(
      (await cluster.sql.query<{ count: string }>(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`))
        .rows[0].count,
    );

  it(`leaves unread what commits while all is marked as read, ${TIMES} times`, async () => {
    const lock = await cluster.sql.connect();
    try {
      for (let time = 0; time < TIMES; time++) {
        await add(`seen ${time}`);
        await lock.query('SELECT pg_advisory_lock($1)', [COMMITS]);
        const late = add(`late ${time}`);
        late.catch(() => undefined);
        await eventually(async () => (await waiting()) > 0, 5000);
        await readAll();
        await lock.query('SELECT pg_advisory_unlock($1)', [COMMITS]);
        await late;
        const { data, unread } = await inbox({ unread: true });
        expect({ seed, time, unread: data.map(({ id }) => id), count: unread }).toEqual({
          seed,
          time,
          unread: [`late ${time}`],
          count: { count: 1, more: false },
        });
      }
    } finally {
      lock.release(true);
    }
    await readAll();
    expect({ seed, ...(await inbox({ pageSize: 0 })).unread }).toEqual({ seed, count: 0, more: false });
    caller.report(`"read up to" beside adds that wait at their COMMIT, ${TIMES} times`);
  }, 300_000);

  it('leaves unread what waited for a lost standby when all was marked as read', async () => {
    await caller.untilDone('notifications/add', { ...notification('before'), notifyAll: true, notifyUsers: [] });
    const standby = async (names: string) => {
      await cluster.sql.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
      await cluster.sql.query('SELECT pg_reload_conf()');
      await eventually(
        async () =>
          (await cluster.sql.query<{ now: string }>(`SELECT current_setting('synchronous_standby_names') AS now`)).rows[0].now ===
          names,
        5000,
      );
    };
    const committing = async () =>
      Number(
        (await cluster.sql.query<{ count: string }>(`SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)).rows[0]
          .count,
      );
    // The deletion of a published event would wait for the standby, too, and be counted below.
    await eventually(async () => (await cluster.sql.query('SELECT FROM notifications.outbox')).rowCount === 0);
    await standby('lost');
    let added: ReturnType<typeof caller.once>;
    let marked: ReturnType<typeof caller.once>;
    try {
      added = caller.once('notifications/add', notification('hanging'));
      await eventually(async () => (await committing()) === 1, 5000);
      await lasting(HANGING_MS);
      marked = caller.once('notifications/update', { organizationId: ORGANIZATION, userId: READER, readUpTo: FAR_FUTURE });
      await eventually(async () => (await committing()) === 2, 5000);
    } finally {
      await standby('');
    }
    expect({ seed, added: (await added).status, marked: (await marked).status }).toEqual({ seed, added: 504, marked: 200 });
    await eventually(async () => (await inbox()).data.some(({ id }) => id === 'hanging'), 10_000);
    const { data } = await inbox({ pageSize: 2 });
    const read = data.map(({ id, read: isRead }) => `${id}: ${isRead ? 'read' : 'unread'}`);
    expect({ seed, read }).toEqual({ seed, read: ['hanging: unread', 'before: read'] });
  });
});
