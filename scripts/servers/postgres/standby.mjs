import { execFile } from 'node:child_process';
import { readdirSync, renameSync, rmSync, writeFileSync, chownSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Keeps the log of the primary until the standby has it. A name is enough: each primary has one standby. */
const SLOT = 'standby';
/** Files that belong to the running primary only. */
const OF_PRIMARY = ['postmaster.pid', 'postmaster.opts'];
/** Folders that a copy needs, but not what is in them. */
const EMPTIED = ['pg_wal', 'pg_replslot', 'pg_stat_tmp'];

/**
 * Copies the data directory of a running primary for a standby.
 * @param {string} primaryUrl with the superuser; its server runs on this machine
 * @param {string} data the new directory
 */
export async function copyPrimary(primaryUrl, data) {
  await copyData(primaryUrl, data, {
    before: (client) => client.query('SELECT pg_create_physical_replication_slot($1, true)', [SLOT]),
    files: { 'standby.signal': '' },
  });
}

/**
 * A base backup. npm does not bring pg_basebackup, so this is what it does: a backup by the functions of SQL, and a copy of the files meanwhile.
 * @param {string} url with the superuser; its server runs on this machine
 * @param {string} data the new directory
 * @param {{ before?: (client: import('pg').Client) => Promise<unknown>, files?: Record<string, string> }} [more] files are written into the copy
 */
export async function copyData(url, data, { before, files = {} } = {}) {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await before?.(client);
    await client.query('SELECT pg_backup_start($1, true)', ['copy']);
    const { rows: found } = await client.query(`SELECT current_setting('data_directory') AS source`);
    const fresh = `${data}.new`;
    rmSync(fresh, { recursive: true, force: true });
    // Not cpSync: it does not keep the owner.
    await promisify(execFile)('cp', ['-a', found[0].source, fresh]);
    const { rows: ended } = await client.query('SELECT labelfile FROM pg_backup_stop(false)');
    for (const name of OF_PRIMARY) rmSync(join(fresh, name), { force: true });
    for (const name of EMPTIED)
      for (const entry of readdirSync(join(fresh, name))) rmSync(join(fresh, name, entry), { recursive: true });
    writeOwned(fresh, { backup_label: ended[0].labelfile, ...files });
    renameSync(fresh, data);
  } finally {
    await client.end();
  }
}

/**
 * Files that belong to the owner of their directory.
 * @param {string} directory
 * @param {Record<string, string>} files
 */
export function writeOwned(directory, files) {
  const { uid, gid } = statSync(directory);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
    chownSync(join(directory, name), uid, gid);
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
    // The default is 5 s: commits of a primary that has restarted would wait that long for its standby.
    'wal_retrieve_retry_interval=200ms',
  ];
}
