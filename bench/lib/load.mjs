import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ROOT } from '../../scripts/checkout/project.mjs';
import { startReaper } from '../../scripts/processes/reaper.mjs';
import { cpuSeconds } from './proc.mjs';
import { HEADERS } from './system.mjs';

/** After so many the code is compiled. */
const COLD_CALLS = 2000;

/** A run whose figures would be those of something else. */
export class FailedRun extends Error {}

/**
 * @typedef {object} Load
 * @property {string} operation e.g. `notifications/add`
 * @property {object} workload see workloads.mjs
 * @property {number} [connections]
 * @property {number} seconds measured
 * @property {number} [warmUpSeconds] before that, and longer when the system has not been asked this before
 * @property {number} [ratePerSecond] open loop: calls are due at this rate whether answers come or not; else each connection has
 *   always one call under way
 */

/**
 * Asks a system, and measures what it takes.
 * @param {import('./laboratory.mjs').Laboratory} laboratory
 * @param {import('./system.mjs').System} system
 * @param {Load} load
 * @param {() => void} [onBegin] called when the warm-up is over
 * @returns {Promise<object>} `calls`, `perSecond`, `p50` … `max` in milliseconds, `servedP50` and `servedP99` from when calls were sent instead of
 *   due, `slowestSecond` the fewest answers in one, `cpu` microseconds for each call by process, with what followed it: `settled` seconds
 * @throws FailedRun when any answer is not 200
 */
export async function measure(laboratory, system, load, onBegin = () => {}) {
  const { operation, connections = 64, warmUpSeconds = laboratory.warmUpSeconds, ...rest } = load;
  const warmUpCalls = system.warm.has(operation) ? 0 : COLD_CALLS;
  system.warm.add(operation);
  await system.settle();
  for (const child of system.children) child.emptyLog();
  // So that none begins in the middle of one run and not in that of another.
  await laboratory.admin.query('CHECKPOINT');
  const options = {
    url: system.url,
    path: `/v1/${operation}`,
    headers: HEADERS,
    connections,
    warmUpSeconds,
    warmUpCalls,
    ...rest,
  };
  const { pid, events, end } = startClient(options);
  const pids = { ...system.pids, ...laboratory.pids, client: pid };
  let before;
  try {
    for await (const { event, ...figures } of events) {
      if (event === 'failed') throw new FailedRun(`${system.name} answered ${operation} with ${figures.outcome}`);
      if (event === 'measured') {
        const since = performance.now();
        await system.settle();
        const settled = (performance.now() - since) / 1000;
        return { ...resultOf(figures, before, cpuSeconds(pids)), settled };
      }
      before = cpuSeconds(pids);
      onBegin();
    }
  } finally {
    await end();
    system.check();
  }
  throw new FailedRun(`the client of ${system.name} ended without a result`);
}

function startClient(options) {
  const client = spawn(process.execPath, [join(ROOT, 'bench/client.mjs')], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true, // Ctrl-C in the terminal is ours to handle, in order
  });
  client.stdin.on('error', () => {}); // it has ended already
  // Not as an argument: ids by the thousand are more than an argument may have.
  client.stdin.write(`${JSON.stringify(options)}\n`);
  const reaper = startReaper('end_group KILL 10');
  reaper.watch(client.pid);
  const exited = new Promise((resolve) => client.once('exit', resolve));
  const end = async () => {
    client.stdin.end();
    await exited;
    reaper.dismiss();
  };
  return { pid: client.pid, events: parsed(createInterface({ input: client.stdout })), end };
}

async function* parsed(lines) {
  for await (const line of lines) yield JSON.parse(line);
}

function resultOf({ calls, seconds, ...figures }, before, after) {
  if (calls === 0) throw new FailedRun('there was no answer');
  const names = Object.keys(before ?? {});
  const cpu = Object.fromEntries(names.map((name) => [name, Math.max(0, (after[name] - before[name]) * 1e6) / calls]));
  return { ...figures, calls, perSecond: calls / seconds, cpu };
}
