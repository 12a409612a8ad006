import { execFileSync } from 'node:child_process';
import { chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { copyData, writeOwned } from './standby.mjs';

/** Seconds after which an unfinished piece of the log is archived, too. It is the most that a restore can lose. */
const ARCHIVE_TIMEOUT_S = 5;

/** @param {string} archive */
const logOf = (archive) => join(archive, 'wal');
/** @param {string} archive */
const baseOf = (archive) => join(archive, 'base');

/**
 * Settings with which PostgreSQL keeps its log in a directory.
 * @param {string} archive
 * @param {{ uid: number, gid: number } | undefined} identity of the server
 */
export function archiveSettings(archive, identity) {
  mkdirSync(logOf(archive), { recursive: true });
  if (identity) for (const directory of [archive, logOf(archive)]) chownSync(directory, identity.uid, identity.gid);
  const log = logOf(archive);
  return [
    'archive_mode=on',
    `archive_command={ cmp -s %p ${log}/%f || { test ! -f ${log}/%f && cp %p ${log}/%f.new && sync ${log}/%f.new && mv ${log}/%f.new ${log}/%f; }; } && sync ${log}`,
    `archive_timeout=${ARCHIVE_TIMEOUT_S}`,
  ];
}

/** @param {string} url @param {string} archive */
export const backUp = (url, archive) => copyData(url, baseOf(archive));

/**
 * Makes a data directory from the backup.
 * @param {string} archive
 * @param {string} data the new directory
 * @param {string} [until] a time as PostgreSQL reads it; absent: everything in the archive
 * @returns {string[]} settings, each `name=value`
 */
export function restore(archive, data, until) {
  execFileSync('cp', ['-a', baseOf(archive), data]);
  writeOwned(data, { 'recovery.signal': '' });
  return [
    `restore_command=cp ${logOf(archive)}/%f %p`,
    'recovery_target_action=promote',
    ...(until ? [`recovery_target_time=${until}`] : []),
  ];
}
