import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ROOT } from '../../scripts/checkout/project.mjs';
import { startReaper } from '../../scripts/processes/reaper.mjs';
import { cpuSeconds, watchBusy } from './proc.mjs';
import { HEADERS } from './system.mjs';

/** After this number of calls the code is compiled. */
const COLD_CALLS = 2000;

/** A run whose figures would be those of something else. */
export class FailedRun extends Error {}

/**
 * Whether a measurement failed, and not this program.
 * @param {unknown} error
 * @returns {error is Error}
 */
export const isFailure = (error) => error instanceof Error && !(error instanceof TypeError || error instanceof ReferenceError);

/**
 * @typedef {object} Load
 * @property {string} operation e.g. `notifications/add`
 * @property {import('../workloads.mjs').Workload} workload
 * @property {number} [connections]
 * @property {number} seconds measured
 * @property {number} [warmUpSeconds] before that, and longer when the system has not been asked this before
 * @property {number} [ratePerSecond] open loop: calls are due at this rate whether answers come or not; else each connection has
 *   always one call under way
 */

/**
 * The result of one measurement, in milliseconds.
 * @typedef {object} Run
 * @property {number} calls
 * @property {number} perSecond
 * @property {number} p50
 * @property {number} p90
 * @property {number} p99
 * @property {number} p999
 * @property {number} max
 * @property {number} servedP50 from when calls were sent instead of due
 * @property {number} servedP99
 * @property {number} slowestSecond the fewest answers in one
 * @property {Record<string, number>} cpu microseconds for each call by process, with what followed it. Time runs until nothing is left to do,
 *   so calls count that came back after the measured seconds
 * @property {number} settled seconds
 * @property {number} [busy] share of the time of all processors, without /proc unknown
 */

/**
 * Asks a system, and measures what it takes.
 * @param {import('./laboratory.mjs').Laboratory} laboratory
 * @param {import('./system.mjs').System} system
 * @param {Load} load
 * @param {() => void} [onBegin] called when the warm-up is over
 * @returns {Promise<Run>}
 * @throws FailedRun when any answer is not 200
 */
export async function measure(laboratory, system, load, onBegin = () => {}) {
  const { operation, connections = 64, warmUpSeconds = laboratory.warmUpSeconds, ...rest } = load;
  // A further gateway is cold as well.
  const asked = `${operation} of ${system.urls.length}`;
  const warmUpCalls = system.warm.has(asked) ? 0 : COLD_CALLS;
  system.warm.add(asked);
  await system.settle();
  for (const child of system.children) child.emptyLog();
  // So that none begins in the middle of one run and not in that of another.
  await laboratory.admin.query('CHECKPOINT');
  const options = {
    urls: system.urls,
    path: `/v1/${operation}`,
    headers: HEADERS,
    connections,
    warmUpSeconds,
    warmUpCalls,
    ...rest,
  };
  const { pid, events, end } = startClient(options);
  const pids = { ...system.pids, ...laboratory.pids, client: pid };
  /** @type {Record<string, number> | undefined} */
  let before;
  let busy = watchBusy();
  try {
    for await (const { event, ...figures } of events) {
      if (event === 'failed') throw new FailedRun(`${system.name} answered ${operation} with ${figures.outcome}`);
      if (event === 'measured') {
        const share = busy();
        const since = performance.now();
        await system.settle();
        const settled = (performance.now() - since) / 1000;
        return { ...resultOf(figures, before ?? {}, cpuSeconds(pids) ?? {}), settled, busy: share };
      }
      before = cpuSeconds(pids);
      busy = watchBusy();
      onBegin();
    }
  } finally {
    await end();
    system.check();
  }
  throw new FailedRun(`the client of ${system.name} ended without a result`);
}

/** @param {object} options see Load */
function startClient(options) {
  const client = spawn(process.execPath, [join(ROOT, 'bench/client.mjs')], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true, // Ctrl-C in the terminal is ours to handle, in order
  });
  client.stdin.on('error', () => {}); // it has ended already
  // Not as an argument: ids by the thousand are more than an argument may have.
  client.stdin.write(`${JSON.stringify(options)}\n`);
  const reaper = startReaper('end_group KILL 10');
  if (client.pid) reaper.watch(client.pid);
  const exited = new Promise((resolve) => client.once('exit', resolve));
  const end = async () => {
    client.stdin.end();
    await exited;
    reaper.dismiss();
  };
  return { pid: client.pid, events: parsed(createInterface({ input: client.stdout })), end };
}

/** @param {AsyncIterable<string>} lines @returns {AsyncGenerator<Record<string, any>>} */
async function* parsed(lines) {
  for await (const line of lines) yield JSON.parse(line);
}

/**
 * @param {Record<string, any>} measured by the client
 * @param {Record<string, number>} before
 * @param {Record<string, number>} after
 * @returns {Omit<Run, 'settled' | 'busy'>}
 */
function resultOf({ calls, callsWithTail, seconds, ...figures }, before, after) {
  if (calls === 0) throw new FailedRun('there was no answer');
  const names = Object.keys(before);
  const cpu = Object.fromEntries(names.map((name) => [name, Math.max(0, (after[name] - before[name]) * 1e6) / callsWithTail]));
  return /** @type {Run} */ ({ ...figures, calls, perSecond: calls / seconds, cpu });
}
