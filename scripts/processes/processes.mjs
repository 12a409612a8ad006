import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** @param {string} command @param {string[]} args */
const commandOutput = (command, args) =>
  execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();

/**
 * Sends a signal to a process, or to a whole process group when the number is negative.
 * @param {number} pid
 * @param {NodeJS.Signals | 0} name
 * @returns {boolean} false when there was nothing to receive it
 */
export function signal(pid, name) {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    if (error.code === 'ESRCH') return false;
    throw error;
  }
}

/**
 * Whether a process of that id exists, ours or not.
 * @param {number} pid
 */
export function isAlive(pid) {
  try {
    return signal(pid, 0);
  } catch {
    return true; // EPERM: it exists and belongs to someone else
  }
}

/**
 * The command line of a process, so that a process id read from a file is not taken for a process that merely got the
 * same number later. Linux has /proc (and slim images have no ps); macOS has ps.
 * @param {number} pid
 * @returns {string} empty when there is no such process
 */
export function commandLine(pid) {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return commandOutput('ps', ['-ww', '-o', 'args=', '-p', String(pid)]);
  } catch {
    return '';
  }
}

/**
 * The parent of a process.
 * @param {number} pid
 * @returns {number} 0 when it cannot be found out
 */
export function parentOf(pid) {
  try {
    if (process.platform === 'linux') return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
    return Number(commandOutput('ps', ['-o', 'ppid=', '-p', String(pid)]));
  } catch {
    return 0;
  }
}

/**
 * The direct children of a process.
 * @param {number} pid
 * @returns {number[]}
 */
export function childrenOf(pid) {
  if (process.platform === 'linux') {
    return readdirSync('/proc')
      .filter((entry) => /^\d+$/.test(entry))
      .map(Number)
      .filter((candidate) => parentOf(candidate) === pid);
  }
  try {
    return execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
      .split('\n')
      .filter(Boolean)
      .map(Number);
  } catch {
    return []; // pgrep exits with 1 when there are none
  }
}

/**
 * Whether SIGSTOP has reached all threads of a process: until each has been scheduled once, it goes on.
 * @param {number} pid
 * @returns {boolean} true also for a process that has ended
 */
export function isStopped(pid) {
  try {
    if (process.platform !== 'linux') return commandOutput('ps', ['-o', 'state=', '-p', String(pid)]).startsWith('T');
    const threads = readdirSync(`/proc/${pid}/task`);
    // The name of the program stands before the state, in parentheses, and may contain some.
    return threads.every((thread) => /^.*\) [TtZX]/s.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')));
  } catch {
    return !isAlive(pid);
  }
}

/**
 * Ends a process that is not our child: asks, waits, then kills.
 * @param {number} pid negative for a process group
 * @param {{ politely?: NodeJS.Signals, withinMs?: number }} [how]
 */
export async function endProcess(pid, { politely = 'SIGTERM', withinMs = 8_000 } = {}) {
  if (!signal(pid, politely)) return;
  for (const since = Date.now(); Date.now() - since < withinMs; await sleep(50)) if (!isAlive(pid)) return;
  signal(pid, 'SIGKILL');
  for (const since = Date.now(); Date.now() - since < 2_000; await sleep(20)) if (!isAlive(pid)) return;
}
