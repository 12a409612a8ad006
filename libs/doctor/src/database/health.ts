import type { ClientBase } from 'pg';
import { counted } from '@app/runtime/counted';
import type { Findings } from '../finding';
import { lookAtArchive, lookAtSlots, lookAtStandbys, seesOthers } from './log';
import { SCHEMAS, tryToLook } from './roles';

const LEAST_VERSION = 14;
const MEBIBYTE = 1024 * 1024;
const LEAST_BUFFERS = 256 * MEBIBYTE;
const OLD_EVENT_S = 30;
const LONG_S = 60;
/** The limit of the alert DeletionStuck. */
const LONG_ERASURE_S = 1800;

/**
 * Looks at the whole server with the full-rights role: settings, sessions, tables, outboxes, erasures, the copy.
 *
 * @param waitingEvents number of events that wait at the broker for notifications; undefined when it is not known
 */
export async function lookAtServer(
  findings: Findings,
  client: ClientBase,
  waitingEvents: () => Promise<number | undefined>,
): Promise<void> {
  const ask = (subject: string, look: () => Promise<void>) => tryToLook(findings, subject, look);
  await ask('settings', () => lookAtSettings(findings, client));
  await ask('archive', () => lookAtArchive(findings, client));
  await ask('standbys', () => lookAtStandbys(findings, client));
  await ask('replication slots', () => lookAtSlots(findings, client));
  await ask('sessions', () => lookAtSessions(findings, client));
  await ask('tables', () => lookAtTables(findings, client));
  for (const schema of SCHEMAS) await ask(`outbox of ${schema}`, () => lookAtOutbox(findings, client, schema));
  for (const schema of SCHEMAS) await ask(`erasures of ${schema}`, () => lookAtErasures(findings, client, schema));
  await ask('copy', () => lookAtCopy(findings, client, waitingEvents));
}

/** Exported for its test. */
export async function lookAtSettings(findings: Findings, client: ClientBase): Promise<void> {
  const { rows } = await client.query<Record<string, string>>(`
    SELECT current_setting('server_version') AS version, current_setting('server_version_num') AS number,
      current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages,
      current_setting('synchronous_commit') AS commit, current_setting('autovacuum') AS autovacuum,
      current_setting('track_activities') AS activities, current_setting('server_encoding') AS encoding,
      pg_size_bytes(current_setting('shared_buffers'))::text AS buffers, current_setting('archive_mode') AS archive`);
  const [row = {}] = rows;
  const before = findings.all.length;
  const subject = 'settings';
  if (Number(row.number) < LEAST_VERSION * 10_000)
    findings.problem(subject, `PostgreSQL ${row.version}`, `use PostgreSQL ${LEAST_VERSION} or later`);
  if (row.fsync === 'off' || row.pages === 'off')
    findings.problem(subject, 'fsync or full_page_writes is off: a crash loses what was answered 200', 'switch both on');
  if (row.commit === 'off')
    findings.problem(subject, 'synchronous_commit is off: a crash loses the last answers 200', 'switch it on');
  if (row.activities === 'off')
    findings.problem(
      subject,
      'track_activities is off: no erasure ends, and "all read" marks at most 1000 notifications in each call',
      'switch it on',
    );
  if (row.encoding !== 'UTF8')
    findings.problem(
      subject,
      `the database has the encoding ${row.encoding}: calls are answered 500 for what it cannot store`,
      'move to a database with the encoding UTF8',
    );
  if (row.autovacuum === 'off') findings.problem(subject, 'autovacuum is off', 'switch it on');
  if (Number(row.buffers) < LEAST_BUFFERS)
    findings.warning(
      subject,
      `shared_buffers is ${Math.round(Number(row.buffers) / MEBIBYTE)} MB`,
      'give it a quarter of the memory of the server',
    );
  if (row.archive === 'off')
    findings.warning(
      subject,
      'archive_mode is off: no restore to a point in time',
      'see "Back up and restore" in docs/operations.md',
    );
  if (findings.all.length === before) findings.ok(subject, `PostgreSQL ${row.version} with settings that keep the promises`);
}

/** Exported for its test. */
export async function lookAtSessions(findings: Findings, client: ClientBase): Promise<void> {
  if (!(await seesOthers(findings, 'sessions', client))) return;
  const { rows } = await client.query<Record<'used' | 'most' | 'long' | 'blocked', number>>(
    `SELECT count(*)::int AS used, current_setting('max_connections')::int AS most,
       count(*) FILTER (WHERE ${HERE} AND now() - xact_start > make_interval(secs => $1))::int AS long,
       count(*) FILTER (WHERE ${WAITING})::int AS blocked
     FROM pg_stat_activity WHERE backend_type = 'client backend'`,
    [LONG_S],
  );
  const { used = 0, most = 1, long = 0, blocked = 0 } = rows[0] ?? {};
  if (used > most * 0.8)
    findings.problem(
      'sessions',
      `${used} of ${most} connections are in use`,
      'raise max_connections, or lower DATABASE_POOL_SIZE',
    );
  else findings.ok('sessions', `${used} of ${most} connections are in use`);
  const oldest = long > 0 ? await sessionOf(client, OLDEST) : undefined;
  if (oldest)
    findings.warning(
      'sessions',
      `${counted(long, 'transaction is', 'transactions are')} older than ${LONG_S} s, the oldest in ${oldest.text}`,
      `unless it is a backup, end it: SELECT pg_terminate_backend(${oldest.pid})`,
    );
  if (blocked === 0) return;
  const found = `${counted(blocked, 'statement waits', 'statements wait')} for a lock`;
  const blocking = await sessionOf(client, BLOCKING);
  if (blocking)
    findings.problem('sessions', `${found} of ${blocking.text}`, `end it: SELECT pg_terminate_backend(${blocking.pid})`);
  else findings.warning('sessions', found, 'see docs/runbooks/PoolExhausted.md');
}

/** Transactions of other databases hold up nothing here. */
const HERE = 'datname = current_database()';
/** An index that is built CONCURRENTLY waits for old transactions, such as that of a backup, and nobody waits for it. */
const WAITING = `${HERE} AND wait_event_type = 'Lock' AND wait_event <> 'virtualxid'`;
const OLDEST = `${HERE} AND backend_type = 'client backend' AND xact_start IS NOT NULL`;
/** Others wait for it, and it waits for nobody. The transactions of the services end within seconds. */
const BLOCKING = `now() - xact_start > interval '5 seconds' AND cardinality(pg_blocking_pids(pid)) = 0 AND pid IN (
  SELECT unnest(pg_blocking_pids(pid)) FROM pg_stat_activity WHERE ${WAITING})`;

/** @returns the session with the oldest transaction of those, as a person reads it; undefined without one */
async function sessionOf(client: ClientBase, condition: string): Promise<{ pid: number; text: string } | undefined> {
  const { rows } = await client.query<{ pid: number; text: string }>(
    `SELECT pid, format('session %s of %s (%s)', pid, coalesce(usename, backend_type), concat_ws(', ', nullif(application_name, ''), state,
       extract(epoch FROM now() - xact_start)::int || ' s')) AS text
     FROM pg_stat_activity WHERE ${condition} ORDER BY xact_start LIMIT 1`,
  );
  return rows[0];
}

async function lookAtTables(findings: Findings, client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ name: string; dead: number; unknown: boolean }>(
    `SELECT format('%I.%I', schemaname, relname) AS name,
       round(100.0 * n_dead_tup / greatest(n_live_tup + n_dead_tup, 1))::int AS dead,
       last_analyze IS NULL AND last_autoanalyze IS NULL AS unknown
     FROM pg_stat_user_tables WHERE schemaname = ANY ($1) AND n_live_tup + n_dead_tup > 10000`,
    [SCHEMAS],
  );
  const before = findings.all.length;
  for (const { name, dead, unknown } of rows) {
    if (unknown) findings.warning(`table ${name}`, 'has no statistics', `run ANALYZE ${name}`);
    if (dead > 30)
      findings.warning(`table ${name}`, `${dead} % of its rows are dead`, `run VACUUM ${name}, and look for long transactions`);
  }
  if (findings.all.length === before) findings.ok('tables', 'have statistics, and few dead rows');
}

async function lookAtOutbox(findings: Findings, client: ClientBase, schema: string): Promise<void> {
  const { rows } = await client.query<{ events: number; seconds: number }>(
    `SELECT count(*)::int AS events, coalesce(extract(epoch FROM clock_timestamp() - min(occurred_at)), 0)::float8 AS seconds FROM ${schema}.outbox`,
  );
  const { events = 0, seconds = 0 } = rows[0] ?? {};
  const found = `${counted(events, 'event')}, the oldest ${Math.round(seconds)} s old`;
  if (seconds > OLD_EVENT_S) findings.problem(`outbox of ${schema}`, found, 'see docs/runbooks/OutboxStuck.md');
  else findings.ok(`outbox of ${schema}`, found);
}

/** Erasures that a service has not completed. In notifications a complete one keeps its row, without users. */
async function lookAtErasures(findings: Findings, client: ClientBase, schema: (typeof SCHEMAS)[number]): Promise<void> {
  const since = schema === 'users' ? 'requested_at' : 'received_at';
  const { rows } = await client.query<{ open: number; seconds: number }>(
    `SELECT count(*)::int AS open, coalesce(extract(epoch FROM clock_timestamp() - min(${since})), 0)::float8 AS seconds
     FROM ${schema}.erasures WHERE user_ids IS NOT NULL`,
  );
  const { open = 0, seconds = 0 } = rows[0] ?? {};
  const found = `${counted(open, 'is', 'are')} not complete, the oldest ${Math.round(seconds)} s old`;
  if (seconds > LONG_ERASURE_S) findings.warning(`erasures of ${schema}`, found, 'see docs/runbooks/DeletionStuck.md');
  else findings.ok(`erasures of ${schema}`, found);
}

/** Users that the copy takes for complete, and for which it shows another membership of their organization than the source. */
async function lookAtCopy(
  findings: Findings,
  client: ClientBase,
  waitingEvents: () => Promise<number | undefined>,
): Promise<void> {
  const { rows } = await client.query<Record<'seen' | 'missing' | 'ended', number>>(COPY_AND_SOURCE);
  const { seen = 0, missing = 0, ended = 0 } = rows[0] ?? {};
  if (missing + ended === 0) return findings.ok('copy', `has the memberships of ${counted(seen, 'user')} in their organizations`);
  const found = [
    ...(missing > 0 ? [`lacks memberships of ${missing}`] : []),
    ...(ended > 0 ? [`has memberships that have ended of ${ended}`] : []),
  ].join(', and ');
  const waiting = await waitingEvents();
  if (waiting)
    findings.warning(
      'copy',
      `${found} of ${counted(seen, 'user')}, and ${counted(waiting, 'event waits', 'events wait')} in notifications.events`,
      'let notifications handle them, and look again',
    );
  else findings.problem('copy', `${found} of ${counted(seen, 'user')}`, 'run "npm run copy -- rebuild"');
}

const SAMPLE = 1000;

/** Nothing while events wait to be published: changes are on their way. */
const COPY_AND_SOURCE = `
  WITH compared AS (
    SELECT
      EXISTS (
        SELECT FROM users.organization_members AS member WHERE member.organization = theirs.id AND member.user_id = complete.user_id
          AND member.added > member.removed AND member.added > known.left_version
      ) AS source,
      EXISTS (
        SELECT FROM notifications.members AS copied
        WHERE copied.organization = own.id AND copied.user_id = complete.user_id AND copied.level = 'organization'
          AND copied.added > copied.removed AND copied.added > coalesce((
            SELECT version FROM notifications.departures AS departure
            WHERE departure.organization = own.id AND departure.user_id = complete.user_id
          ), -1)
      ) AS copy
    FROM (SELECT organization, user_id FROM notifications.complete_members LIMIT ${SAMPLE}) AS complete
    JOIN notifications.organizations AS own ON own.id = complete.organization
    JOIN users.organizations AS theirs USING (api_key, organization_id)
    JOIN users.users AS known ON known.organization = theirs.id AND known.user_id = complete.user_id
    WHERE NOT EXISTS (SELECT FROM users.outbox)
  )
  SELECT count(*)::int AS seen, count(*) FILTER (WHERE source AND NOT copy)::int AS missing,
    count(*) FILTER (WHERE copy AND NOT source)::int AS ended
  FROM compared`;
