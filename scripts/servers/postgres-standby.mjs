import { execFile } from 'node:child_process';
import { readdirSync, renameSync, rmSync, writeFileSync, chownSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Keeps the log of the primary until the standby has it. A name is enough: each primary has one standby. */
const SLOT = 'standby';
/** What belongs to the running primary only. */
const OF_PRIMARY = ['postmaster.pid', 'postmaster.opts'];
/** Folders that a copy needs, but not what is in them. */
const EMPTIED = ['pg_wal', 'pg_replslot', 'pg_stat_tmp'];

/**
 * Copies the data directory of a running primary. npm does not bring pg_basebackup, so this is what it does: a backup by the functions of
 * SQL, and a copy of the files meanwhile.
 * @param {string} primaryUrl with the superuser; its server runs on this machine
 * @param {string} data the new directory
 */
export async function copyPrimary(primaryUrl, data) {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: primaryUrl });
  await client.connect();
  try {
    await client.query('SELECT pg_create_physical_replication_slot($1, true)', [SLOT]);
    await client.query('SELECT pg_backup_start($1, true)', [SLOT]);
    const { rows: found } = await client.query(`SELECT current_setting('data_directory') AS source`);
    const fresh = `${data}.new`;
    rmSync(fresh, { recursive: true, force: true });
    // Not cpSync: it does not keep the owner.
    await promisify(execFile)('cp', ['-a', found[0].source, fresh]);
    const { rows: ended } = await client.query('SELECT labelfile FROM pg_backup_stop(false)');
    for (const name of OF_PRIMARY) rmSync(join(fresh, name), { force: true });
    for (const name of EMPTIED)
      for (const entry of readdirSync(join(fresh, name))) rmSync(join(fresh, name, entry), { recursive: true });
    const { uid, gid } = statSync(fresh);
    for (const [name, text] of [
      ['backup_label', ended[0].labelfile],
      ['standby.signal', ''],
    ]) {
      writeFileSync(join(fresh, name), text, { mode: 0o600 });
      chownSync(join(fresh, name), uid, gid);
    }
    renameSync(fresh, data);
  } finally {
    await client.end();
  }
}

/**
 * @param {string} primaryUrl
 * @returns {string[]} settings, each `name=value`
 */
export function standbySettings(primaryUrl) {
  const { hostname, port, username } = new URL(primaryUrl);
  return [
    `primary_conninfo=host=${hostname} port=${port} user=${username} application_name=${SLOT}`,
    `primary_slot_name=${SLOT}`,
  ];
}
