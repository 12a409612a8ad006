import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ROOT } from '../../scripts/lib/project.mjs';
import { startReaper } from '../../scripts/lib/reaper.mjs';
import { cpuSeconds } from './proc.mjs';
import { HEADERS } from './systems.mjs';

/** The figures of a run with errors would be those of something else. */
export class FailedRun extends Error {}

/**
 * @typedef {object} Load
 * @property {string} operation e.g. `notifications/add`
 * @property {object} workload see workloads.mjs
 * @property {number} [connections]
 * @property {number} seconds measured
 * @property {number} [warmUpSeconds] before that
 * @property {number} [ratePerSecond] open loop: calls are due at this rate whether answers come or not; else each connection has
 *   always one call under way
 * @property {() => void} [whileMeasuring] called when the measurement begins
 */

/**
 * Asks a system, and measures what it takes.
 * @param {import('./laboratory.mjs').Laboratory} laboratory
 * @param {import('./systems.mjs').System} system
 * @param {Load} load
 * @returns {Promise<object>} `perSecond`, `p50` … `max` in milliseconds, `cpu` microseconds for each call by process
 */
export async function measure(laboratory, system, load) {
  const { operation, connections = 64, warmUpSeconds = 1, whileMeasuring, ...rest } = load;
  await system.settle();
  await laboratory.admin.query('CHECKPOINT');
  const options = { url: system.url, path: `/v1/${operation}`, headers: HEADERS, connections, warmUpSeconds, ...rest };
  const { client, events, end } = startClient(options);
  const pids = { ...pidsOf(system), ...laboratory.pids, client: client.pid };
  let before;
  try {
    for await (const event of events) {
      if (event.event === 'failed') throw new FailedRun(`${system.name}: ${operation} was answered with ${event.outcome}`);
      if (event.event === 'measuring') {
        before = cpuSeconds(pids);
        whileMeasuring?.();
      }
      if (event.event === 'measured') return resultOf(event, system, before, cpuSeconds(pids));
    }
  } finally {
    await end();
  }
  for (const child of system.children) child.check();
  throw new FailedRun(`${system.name}: the client ended without a result`);
}

export const pidsOf = (system) => Object.fromEntries(system.children.map(({ name, pid }) => [name, pid]));

function startClient(options) {
  const client = spawn(process.execPath, [join(ROOT, 'bench/client.mjs'), JSON.stringify(options)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const reaper = startReaper('end_group KILL 10');
  reaper.watch(client.pid);
  const exited = new Promise((resolve) => client.once('exit', resolve));
  const lines = createInterface({ input: client.stdout });
  const end = async () => {
    client.stdin.end();
    await exited;
    reaper.dismiss();
  };
  return { client, events: parsed(lines), end };
}

async function* parsed(lines) {
  for await (const line of lines) yield JSON.parse(line);
}

function resultOf(figures, system, before, after) {
  for (const child of system.children) child.check();
  const { calls, seconds, statuses } = figures;
  const failed = Object.entries(statuses).filter(([status]) => status !== '200');
  if (failed.length > 0 || calls === 0)
    throw new FailedRun(`${system.name}: ${failed.map(([status, times]) => `${times} × ${status}`).join(', ') || 'no answers'}`);
  const cpu =
    before &&
    Object.fromEntries(Object.keys(before).map((name) => [name, Math.max(0, (after[name] - before[name]) * 1e6) / calls]));
  return { ...figures, perSecond: calls / seconds, cpu };
}
