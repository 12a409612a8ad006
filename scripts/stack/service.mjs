import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { exitCode } from '../processes/command.mjs';
import { freePorts } from '../processes/free-port.mjs';
import { signal } from '../processes/processes.mjs';
import { report } from '../checkout/progress.mjs';
import { NODE_FLAGS, ROOT, bundleOf } from '../checkout/project.mjs';
import { startReaper } from '../processes/reaper.mjs';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;
/** A service that ran this long was well: the next restart is a quick one again. */
const WELL_AFTER_MS = 30_000;
const ATTEMPTS_BEFORE_FIRST_READY = 3;
const STOP_LIMIT_MS = 25_000;
/** A developer waits for the new process: what the old one has in hand is given up after that. */
const RESTART_LIMIT_MS = 300;
const FOREVER_MS = 2 ** 31 - 1;

/**
 * @typedef {object} ServiceOptions
 * @property {string[]} [flags] of Node, beside those of production
 * @property {string} [program] default: its bundle
 * @property {boolean} [waitsForChange] one that dies stays so until it is restarted: the same code would die again
 */

/** One service as a child process that is started again when it dies. */
export class Service {
  #name;
  #env;
  #log;
  #flags;
  #program;
  #waitsForChange;
  /** @type {import('node:child_process').ChildProcess | undefined} */
  #child;
  #runs = 0;
  #change = new AbortController();
  #waiting = false;
  #reaper = startReaper('end_group TERM 20');
  #leaving = new AbortController();
  /** @type {Promise<void> | undefined} */
  #loop;
  #wasReady = false;
  /** @type {number | undefined} */
  #healthPort;

  /**
   * @param {string} name
   * @param {NodeJS.ProcessEnv} env
   * @param {import('./service-log.mjs').ServiceLog} log
   * @param {ServiceOptions} [options]
   */
  constructor(name, env, log, { flags = [], program = bundleOf(name), waitsForChange = false } = {}) {
    this.#name = name;
    this.#env = env;
    this.#log = log;
    this.#flags = flags;
    this.#program = program;
    this.#waitsForChange = waitsForChange;
  }

  /**
   * @returns {Promise<void>} resolves when it is ready for the first time, or waits for a change; rejects when it does not get there
   */
  async start(timeoutMs = 60_000) {
    [this.#healthPort] = await freePorts([undefined]);
    const gaveUp = new Promise((_, reject) => (this.#loop = this.#keepRunning(reject)));
    await Promise.race([gaveUp, this.#firstReady(timeoutMs)]);
  }

  /** Of health and metrics; the same after a restart, unless another program has taken it. */
  get healthPort() {
    return this.#healthPort;
  }

  /** @param {(reason: Error) => void} giveUp */
  async #keepRunning(giveUp) {
    let delay = FIRST_DELAY_MS;
    for (let attempt = 1; !this.#leaving.signal.aborted; attempt++) {
      const since = Date.now();
      const ending = await this.#runOnce();
      if (this.#leaving.signal.aborted) return;
      if (this.#waitsForChange) {
        await this.#untilChange(ending);
        continue;
      }
      if (!this.#wasReady && attempt >= ATTEMPTS_BEFORE_FIRST_READY)
        return giveUp(new Error(`The ${this.#name} service does not start (${ending}).`));
      if (Date.now() - since > WELL_AFTER_MS) delay = FIRST_DELAY_MS;
      report(`${this.#name} ended (${ending}); starting it again in ${delay / 1000} s`);
      await sleep(delay, undefined, { signal: this.#leaving.signal }).catch(() => {});
      delay = Math.min(delay * 2, LONGEST_DELAY_MS);
    }
  }

  /** @param {number | string} ending */
  async #untilChange(ending) {
    const signal = AbortSignal.any([this.#leaving.signal, this.#change.signal]);
    if (!signal.aborted) {
      report(`${this.#name} ended (${ending}); the next change starts it again`);
      this.#waiting = true;
      await sleep(FOREVER_MS, undefined, { signal }).catch(() => {});
      this.#waiting = false;
    }
    this.#change = new AbortController();
  }

  async #runOnce() {
    [this.#healthPort] = await freePorts([this.#healthPort]);
    if (this.#leaving.signal.aborted) return 'not started';
    this.#runs++;
    const child = spawn(process.execPath, [...NODE_FLAGS, ...this.#flags, this.#program], {
      cwd: ROOT,
      env: { ...this.#env, HEALTH_PORT: String(this.#healthPort) },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // Ctrl-C in the terminal is ours to handle, in order
    });
    this.#child = child;
    if (child.pid) this.#reaper.watch(child.pid);
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => this.#log.write(text));
    const ending = await exitCode(child);
    this.#reaper.watch(0);
    this.#child = undefined;
    return typeof ending === 'number' ? `exit code ${ending}` : ending;
  }

  /** @param {number} timeoutMs */
  async #firstReady(timeoutMs) {
    for (const since = Date.now(); !(await this.isReady()); await sleep(50)) {
      if (this.#leaving.signal.aborted || this.#waiting) return;
      if (Date.now() - since > timeoutMs) throw new Error(`The ${this.#name} service was not ready after ${timeoutMs / 1000} s.`);
    }
    this.#wasReady = true;
  }

  /**
   * Starts it anew, with the code as it is now. For one that waits for changes.
   * @returns {Promise<boolean>} whether this very process is ready; false when it ended, or made way for the next
   */
  async restart() {
    const next = this.#runs + 1;
    const child = this.#child;
    const pid = child?.pid;
    this.#change.abort();
    if (pid) {
      child.kill('SIGTERM');
      const timer = setTimeout(() => signal(-pid, 'SIGKILL'), RESTART_LIMIT_MS);
      child.once('exit', () => clearTimeout(timer));
    }
    for (; this.#runs <= next; await sleep(20)) {
      if (this.#leaving.signal.aborted) return false;
      if (this.#runs < next) continue;
      if (this.#waiting) return false;
      if (await this.isReady()) return this.#runs === next;
    }
    return false;
  }

  /** @returns {Promise<boolean>} */
  async isReady() {
    try {
      const response = await fetch(`http://127.0.0.1:${this.#healthPort}/health/ready`, { signal: AbortSignal.timeout(2_000) });
      await response.arrayBuffer();
      return response.ok;
    } catch {
      return false;
    }
  }

  /** Lets it finish what it does, within limits. */
  async stop() {
    this.#leaving.abort();
    const child = this.#child;
    const pid = child?.pid;
    if (pid) {
      child.kill('SIGTERM');
      const timer = setTimeout(() => signal(-pid, 'SIGKILL'), STOP_LIMIT_MS);
      await this.#loop;
      clearTimeout(timer);
    }
    this.#reaper.dismiss();
  }

  /** Ends it at once. */
  async kill() {
    this.#leaving.abort();
    if (this.#child?.pid) signal(-this.#child.pid, 'SIGKILL');
    await this.#loop;
    this.#reaper.dismiss();
  }
}
