import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { signal } from './processes.mjs';
import { startReaper } from './reaper.mjs';

const KILL_AFTER_MS = 5_000;

/** A command that did not end well, with what it had to say. */
export class CommandFailure extends Error {
  /** @param {string} command @param {number | string} code @param {string} output */
  constructor(command, code, output) {
    super(`${command} failed (${code})`);
    this.output = output;
  }
}

/** @type {Set<number>} process groups of the commands that run */
const running = new Set();

/**
 * Runs a command to its end, with all it starts: whatever is left of it then, or when we are killed, is ended.
 * @param {string} command
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions} options
 * @param {AbortSignal} [abort] ends it
 * @returns {Promise<number | string>} see exitCode
 */
export async function runCommand(command, args, options, abort) {
  const reaper = startReaper('end_group TERM 20');
  const child = spawn(command, args, { ...options, detached: true });
  const { pid } = child;
  if (pid) {
    reaper.watch(pid);
    running.add(pid);
    child.once('exit', () => signal(-pid, 'SIGKILL'));
    abort?.addEventListener('abort', () => end(pid));
  }
  const code = await exitCode(child);
  if (pid) running.delete(pid);
  reaper.dismiss();
  return code;
}

/** Ends every command that runs, because we are leaving. */
export function endCommands() {
  for (const group of running) end(group);
}

/** @param {number} group */
function end(group) {
  signal(-group, 'SIGTERM');
  setTimeout(() => running.has(group) && signal(-group, 'SIGKILL'), KILL_AFTER_MS).unref();
}

/**
 * The same, silent unless it fails.
 * @param {string} command
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions & { name?: string, mayOutliveUs?: boolean }} [options] `mayOutliveUs`
 *   for one that must not be interrupted half-way
 */
export async function runQuietly(command, args, { name = command, mayOutliveUs = false, ...options } = {}) {
  const log = openNamelessFile();
  /** @type {import('node:child_process').SpawnOptions} */
  const spawnOptions = { ...options, stdio: ['ignore', log, log] };
  try {
    const code = mayOutliveUs
      ? await exitCode(spawn(command, args, { ...spawnOptions, detached: true }))
      : await runCommand(command, args, spawnOptions);
    if (code !== 0) throw new CommandFailure(name, code, contentsOf(log));
  } finally {
    closeSync(log);
  }
}

// A pipe would break under a command that outlives us, and a file with a name would be left behind by a SIGKILL.
function openNamelessFile() {
  const path = join(tmpdir(), `output-${randomUUID()}`);
  const file = openSync(path, 'wx+', 0o600);
  unlinkSync(path);
  return file;
}

/** @param {number} file */
function contentsOf(file) {
  const content = Buffer.alloc(fstatSync(file).size);
  return content.toString('utf8', 0, readSync(file, content, 0, content.length, 0));
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @returns {Promise<number | string>} its exit code, or the name of the signal or error that ended it
 */
export function exitCode(child) {
  return new Promise((resolve) => {
    child.once('error', (/** @type {NodeJS.ErrnoException} */ error) => resolve(error.code ?? error.message));
    child.once('exit', (code, signalName) => resolve(code ?? signalName ?? 'no exit code'));
  });
}
