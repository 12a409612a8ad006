import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { childrenOf, isStopped, signal } from './processes.mjs';
import { startReaper } from './reaper.mjs';

/**
 * One server program in a process group of its own: Ctrl-C in a terminal goes to the whole foreground group and must
 * not reach a server before its clients. Knows how to start it, end it, freeze it and start it again.
 */
export class ServerProcess {
  #describe;
  #reaper;
  /** @type {import('node:child_process').ChildProcess & { pid: number } | undefined} */
  #child;
  /** @type {Promise<void>} */
  #exited = Promise.resolve();
  #expected = true;
  #ready = false;

  /**
   * @param {object} options
   * @param {string} options.name for messages
   * @param {() => { command: string, args: string[], options?: import('node:child_process').SpawnOptions }} options.describe
   * @param {string} options.logFile where its output goes; truncated at each start
   * @param {() => Promise<boolean>} options.isReady
   * @param {NodeJS.Signals} options.stopSignal what the program takes for "finish and go"
   * @param {() => Promise<unknown>} [options.beforeStop] what makes the end of a ready server shorter; its failure is ignored
   * @param {{ script: string, variables?: Record<string, string> }} options.onOrphaned see startReaper
   * @param {number} [options.readyMs] time for a start
   * @param {(pid: number) => void} [options.onStart]
   * @param {() => void} [options.onExit] called whenever it has ended; must not take long
   * @param {AbortSignal} [options.abort] ends a start that is under way
   * @param {() => void} [options.onDeath] called when the server goes by itself
   */
  constructor(options) {
    this.#describe = options;
    this.#reaper = startReaper(options.onOrphaned.script, options.onOrphaned.variables);
  }

  get pid() {
    return this.#child?.pid;
  }

  get running() {
    return this.#child !== undefined;
  }

  async start(timeoutMs = this.#describe.readyMs ?? 60_000) {
    if (this.#child) return;
    const { name, describe, logFile, isReady, onStart, onExit, onDeath, abort } = this.#describe;
    const { command, args, options } = describe();
    const log = openSync(logFile, 'w', 0o600);
    const child = spawn(command, args, { ...options, stdio: ['ignore', log, log], detached: true });
    closeSync(log);
    if (child.pid) {
      this.#reaper.watch(child.pid);
      onStart?.(child.pid);
    }
    // One that could not be started has none, and is gone before anybody asks.
    this.#child = /** @type {typeof child & { pid: number }} */ (child);
    this.#expected = false;
    /** @type {Error[]} */
    const failures = [];
    child.once('error', (error) => failures.push(error));
    this.#exited = new Promise((resolve) => {
      const gone = () => {
        // Helpers in its group (epmd) outlive it. Synchronous, so that the group's number cannot be reused in between.
        if (child.pid) signal(-child.pid, 'SIGKILL');
        onExit?.();
        this.#reaper.watch(0);
        this.#child = undefined;
        resolve();
        if (this.#ready && !this.#expected) onDeath?.();
        this.#ready = false;
      };
      child.once('exit', gone);
      child.once('error', gone);
    });
    for (const since = Date.now(); ; await sleep(25)) {
      if (failures.length > 0) throw new Error(`${name} could not be started: ${failures[0].message}`);
      if (this.#child !== child) throw new Error(`${name} ended while starting; the end of ${logFile}:\n${endOf(logFile)}`);
      if (await isReady()) {
        this.#ready = true;
        return;
      }
      if (abort?.aborted) {
        await this.stop(3_000);
        throw new Error(`${name} was stopped while starting`);
      }
      if (Date.now() - since > timeoutMs) {
        await this.kill();
        throw new Error(`${name} was not ready after ${timeoutMs / 1000} s; see ${logFile}`);
      }
    }
  }

  /** Ends it in an orderly way and keeps its data. */
  async stop(timeoutMs = 15_000) {
    if (!this.#child) return;
    this.#expected = true;
    const { pid } = this.#child;
    this.resume();
    const timer = setTimeout(() => signal(-pid, 'SIGKILL'), timeoutMs);
    if (this.#ready) await Promise.race([this.#describe.beforeStop?.().catch(() => {}), this.#exited]);
    if (this.#child) signal(pid, this.#describe.stopSignal);
    await this.#exited;
    clearTimeout(timer);
  }

  /** Ends it as a power cut would. */
  async kill() {
    if (!this.#child) return;
    this.#expected = true;
    this.#signalAll('SIGKILL');
    await this.#exited;
  }

  /** Freezes it: connections stay open and nothing answers. */
  async pause() {
    this.#signalAll('SIGSTOP');
    const since = Date.now();
    // A thread that waits for a processor goes on until it gets one: on a busy machine a broker still answers for a while.
    while (this.#child && ![this.#child.pid, ...childrenOf(this.#child.pid)].every(isStopped)) {
      if (Date.now() - since > STOPPED_MS)
        throw new Error(`${this.#describe.name} still runs ${STOPPED_MS / 1000} s after SIGSTOP`);
      await sleep(5);
    }
  }

  resume() {
    this.#signalAll('SIGCONT');
  }

  // A PostgreSQL backend leads a session of its own, so the group alone is not everyone.
  /** @param {NodeJS.Signals} name */
  #signalAll(name) {
    if (!this.#child) return;
    const { pid } = this.#child;
    if (name !== 'SIGKILL') signal(-pid, name);
    for (const child of childrenOf(pid)) signal(child, name);
    if (name === 'SIGKILL') signal(-pid, name);
  }

  /** After the last stop or kill, when what the reaper would have done has been done. */
  dismissReaper() {
    this.#reaper.dismiss();
  }
}

const STOPPED_MS = 10_000;
const LAST_LINES = 15;

// The whole file may be gone when somebody reads the message: data of tests is removed.
/** @param {string} file */
function endOf(file) {
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-LAST_LINES).join('\n');
}
