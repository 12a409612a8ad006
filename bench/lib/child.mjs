import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, truncateSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { exitCode } from '../../scripts/processes/command.mjs';
import { signal } from '../../scripts/processes/processes.mjs';
import { ROOT } from '../../scripts/checkout/project.mjs';
import { startReaper } from '../../scripts/processes/reaper.mjs';

const STOP_LIMIT_MS = 25_000;

/** A Node process of a system under test. It ends with us, whatever way we go. */
export class Child {
  #child;
  #exited;
  #reaper = startReaper('end_group KILL 10');

  /**
   * @param {string} name
   * @param {string[]} args of node
   * @param {NodeJS.ProcessEnv} env
   * @param {string} logFile what it writes goes here, as under a supervisor
   */
  constructor(name, args, env, logFile) {
    this.name = name;
    this.logFile = logFile;
    const log = openSync(logFile, 'a', 0o600);
    const options = { cwd: ROOT, env: { PATH: process.env.PATH, NODE_ENV: 'production', ...env }, detached: true };
    this.#child = spawn(process.execPath, args, { ...options, stdio: ['ignore', log, log] });
    closeSync(log);
    if (this.#child.pid) this.#reaper.watch(this.#child.pid);
    this.#exited = exitCode(this.#child).then((code) => {
      this.ending = code;
      this.#reaper.dismiss();
    });
  }

  get pid() {
    return this.#child.pid;
  }

  /** Forgets what it wrote: at thousands of lines a second it would fill the disk in the end. */
  emptyLog() {
    truncateSync(this.logFile);
  }

  /** Throws when it has ended by itself. */
  check() {
    if (this.ending === undefined) return;
    const last = readFileSync(this.logFile, 'utf8').trimEnd().split('\n').slice(-5).join('\n');
    throw new Error(`${this.name} has ended (${this.ending}):\n${last}`);
  }

  /** @param {() => Promise<boolean>} isReady */
  async untilReady(isReady, timeoutMs = 30_000) {
    for (const since = Date.now(); ; await sleep(50)) {
      this.check();
      if (await isReady().catch(() => false)) return;
      if (Date.now() - since > timeoutMs) throw new Error(`${this.name} was not ready after ${timeoutMs / 1000} s`);
    }
  }

  /** @param {NodeJS.Signals} [how] */
  async stop(how = 'SIGTERM') {
    if (this.ending !== undefined) return;
    const { pid } = this;
    if (pid) signal(pid, how);
    const timer = setTimeout(() => pid && signal(-pid, 'SIGKILL'), STOP_LIMIT_MS);
    await this.#exited;
    clearTimeout(timer);
  }
}
