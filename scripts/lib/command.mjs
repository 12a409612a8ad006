import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A command that did not end well, with what it had to say. */
export class CommandFailure extends Error {
  constructor(command, code, output) {
    super(`${command} failed (${code})`);
    this.output = output;
  }
}

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();

/** Ends what runs, because we are leaving; a detached command is left to finish. */
export function endCommands() {
  for (const child of running) child.kill('SIGTERM');
}

/**
 * Runs a command to its end; its output is shown only when it fails. It goes through a file, so that a command left
 * running when we are stopped does not die of a broken pipe.
 * @param {string} command
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 */
export async function runQuietly(command, args, options = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'output-'));
  const file = join(directory, 'log');
  const log = openSync(file, 'w', 0o600);
  try {
    const child = spawn(command, args, { ...options, stdio: ['ignore', log, log] });
    if (!options.detached) running.add(child);
    const code = await exitCode(child);
    running.delete(child);
    if (code !== 0) throw new CommandFailure(`${command} ${args.join(' ')}`, code, readFileSync(file, 'utf8'));
  } finally {
    closeSync(log);
    rmSync(directory, { recursive: true, force: true });
  }
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @returns {Promise<number | string>} its exit code, or the name of the signal or error that ended it
 */
export function exitCode(child) {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.code ?? error.message));
    child.once('exit', (code, signalName) => resolve(code ?? signalName));
  });
}
