import type { ClientBase } from 'pg';
import { counted } from '@app/runtime/counted';
import type { Findings } from '../finding';

const MEBIBYTE = 1024 * 1024;
/** A piece of the log is archived within seconds. */
const LONG_WAIT_S = 300;

/** Whether the log is archived. While it is not, the server keeps it until its disk is full. */
export async function lookAtArchive(findings: Findings, client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ fails: boolean; unset: boolean; seconds: number | null }>(
    `SELECT coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) AS fails,
       current_setting('archive_command') = '' AND coalesce(current_setting('archive_library', true), '') = '' AS unset,
       extract(epoch FROM clock_timestamp() - last_archived_time)::float8 AS seconds
     FROM pg_stat_archiver WHERE current_setting('archive_mode') <> 'off'`,
  );
  const [archive] = rows;
  if (!archive) return;
  const { fails, unset, seconds } = archive;
  const waits = await longestWait(client);
  const last = seconds === null ? 'nothing was archived yet' : `the last piece was archived ${Math.round(seconds)} s ago`;
  const harm = 'a restore lacks what is not archived, and the server keeps it until its disk is full';
  const bad = (what: string, action: string) => findings.problem('archive', `${what}; ${last}`, `${action}: ${harm}`);
  if (unset) bad('archive_mode is on, and nothing says how to archive', 'set archive_command');
  else if (fails) bad('archive_command or the library for it fails', 'look at the log of PostgreSQL');
  else if (waits > LONG_WAIT_S)
    bad(`a piece of the log has waited for ${Math.round(waits)} s`, 'end an archive_command that hangs, or make it faster');
  else findings.ok('archive', last);
}

/** Seconds that the oldest piece of the log has waited to be archived. 0 without one, and for an account that may not ask. */
async function longestWait(client: ClientBase): Promise<number> {
  const { rows: may } = await client.query<{ ask: boolean }>(
    `SELECT has_function_privilege('pg_ls_archive_statusdir()', 'EXECUTE') AS ask`,
  );
  if (!may[0]?.ask) return 0;
  const { rows } = await client.query<{ seconds: number }>(
    `SELECT coalesce(extract(epoch FROM clock_timestamp() - min(modification)), 0)::float8 AS seconds
     FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'`,
  );
  return rows[0]?.seconds ?? 0;
}

/** Whether answers 200 are on a standby as well. Programs that only receive the log apply none of it. */
export async function lookAtStandbys(findings: Findings, client: ClientBase): Promise<void> {
  const subject = 'standbys';
  if (!(await seesOthers(findings, subject, client))) return;
  const { rows } = await client.query<{ names: string; commit: string; synchronous: number; standbys: number }>(
    `SELECT current_setting('synchronous_standby_names') AS names, current_setting('synchronous_commit') AS commit,
       count(*) FILTER (WHERE sync_state IN ('sync', 'quorum'))::int AS synchronous,
       count(*) FILTER (WHERE replay_lsn IS NOT NULL AND NOT EXISTS (
         SELECT FROM pg_replication_slots WHERE active_pid = sender.pid AND slot_type = 'logical'))::int AS standbys
     FROM pg_stat_replication AS sender`,
  );
  const { names = '', commit = '', synchronous = 0, standbys = 0 } = rows[0] ?? {};
  if (names && synchronous === 0)
    findings.problem(
      subject,
      'no synchronous standby is connected, so commits wait',
      'bring it back, or empty synchronous_standby_names',
    );
  else if (names && commit === 'local')
    findings.problem(subject, 'synchronous_commit is local: a failover loses the last answers 200', 'set it to on');
  else if (!names && standbys > 0)
    findings.warning(
      subject,
      `${counted(standbys, 'follows', 'follow')}, and none is synchronous: a failover loses the last answers 200`,
      'set synchronous_standby_names: "A synchronous standby" in docs/servers.md',
    );
  else findings.ok(subject, names ? `${counted(synchronous, 'is', 'are')} synchronous` : 'none follows this server');
}

/** @returns whether the account sees standbys and the sessions of other roles. When it does not, a finding says so */
export async function seesOthers(findings: Findings, subject: string, client: ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ sees: boolean }>(`SELECT pg_has_role('pg_read_all_stats', 'USAGE') AS sees`);
  if (rows[0]?.sees) return true;
  findings.skipped(subject, 'the account in DATABASE_URL does not see them: GRANT pg_monitor TO it');
  return false;
}

/** Replication slots that nobody reads: the server keeps the log for them, without a limit by itself. */
export async function lookAtSlots(findings: Findings, client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ name: string; bytes: number | null }>(
    `SELECT slot_name AS name, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8 AS bytes
     FROM pg_replication_slots WHERE NOT active AND (restart_lsn IS NOT NULL OR wal_status = 'lost') ORDER BY bytes DESC`,
  );
  for (const { name, bytes } of rows) {
    const drop = `run SELECT pg_drop_replication_slot('${name}')`;
    if (bytes === null)
      findings.warning(
        `replication slot ${name}`,
        'the log that its standby needs is gone',
        `${drop}, and make the standby anew`,
      );
    else
      findings.warning(
        `replication slot ${name}`,
        `nobody reads it, and the server keeps ${Math.round(bytes / MEBIBYTE)} MB of its log for it`,
        `bring its standby back, or ${drop} before the disk is full`,
      );
  }
}
