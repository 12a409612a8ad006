import { join } from 'node:path';
import { runQuietly } from '../../scripts/processes/command.mjs';
import { report } from '../../scripts/checkout/progress.mjs';
import { ROOT } from '../../scripts/checkout/project.mjs';
import { eventually } from '../lib/eventually.mjs';
import { cpuTable } from '../lib/findings.mjs';
import { cpuSeconds } from '../lib/proc.mjs';
import { median, spread, whole } from '../lib/statistics.mjs';

export const title = 'commands published directly, without a reply, drained by one writer';

const LEAST = 8000;
const STRETCH = 10_000;
const DRAINED_WITHIN_MS = 120_000;
/** Every stored notification takes a number here: commits are counted without counting rows. */
const STORED = 'SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS stored FROM notifications.outbox_seq_seq';

/**
 * They are published while no writer runs, then one starts: what publishing takes is not what draining takes.
 * @param {import('../lib/laboratory.mjs').Laboratory} laboratory
 * @param {import('../lib/modes.mjs').Mode} mode
 */
export async function run(laboratory, { rounds, commands }) {
  /** @type {Drained[]} */
  const runs = [];
  for (let round = 0; round < rounds; round++) {
    const system = await laboratory.system('ours');
    await system.settle();
    runs.push(await drain(laboratory, system, commands));
    report(`    round ${round + 1} of ${rounds}: ${whole(runs[round].perSecond)}/s`);
  }
  /** @param {(run: Drained) => number} pick */
  const of = (pick) => median(runs.map(pick));
  const perSecond = of((run) => run.perSecond);
  const cpu = Object.fromEntries(Object.keys(runs[0].cpu).map((name) => [name, of((run) => run.cpu[name])]));
  return {
    verdicts: [
      {
        what: title,
        target: `at least ${whole(LEAST)} a second, stretch ${whole(STRETCH)}`,
        reached: `${whole(perSecond)}/s`,
        spread: `${spread(runs, (run) => run.perSecond)}/s`,
        met: perSecond >= LEAST,
      },
    ],
    tables: [cpuTable(title, { ours: { cpu } })],
  };
}

/** @typedef {{ perSecond: number, cpu: Record<string, number> }} Drained with microseconds for each command, by process */

/**
 * @param {import('../lib/laboratory.mjs').Laboratory} laboratory
 * @param {import('../lib/ours.mjs').Ours} system
 * @param {number} commands
 * @returns {Promise<Drained>}
 */
async function drain(laboratory, system, commands) {
  const stored = async () => Number((await system.sql.query(STORED)).rows[0].stored);
  await system.setWriters(0);
  const earlier = await stored();
  const env = { PATH: process.env.PATH, AMQP_URL: laboratory.rabbit.url };
  const publisher = [join(ROOT, 'bench/publisher.mjs'), JSON.stringify({ count: commands })];
  await runQuietly(process.execPath, publisher, { cwd: ROOT, env, name: 'The publisher' });
  await laboratory.admin.query('CHECKPOINT');
  let first = { count: 0, at: 0 };
  // From the first batch on: how long a process takes to start is something else.
  const started = system.setWriters(1);
  await eventually('the first command is stored', DRAINED_WITHIN_MS, async () => {
    const count = (await stored()) - earlier;
    if (count > 0) first = { count, at: performance.now() };
    return count > 0;
  });
  const pids = { ...system.pids, ...laboratory.pids };
  const before = cpuSeconds(pids) ?? {};
  await eventually('all commands are stored', DRAINED_WITHIN_MS, async () => (await stored()) - earlier >= commands);
  const seconds = (performance.now() - first.at) / 1000;
  // Events are part of the price.
  await system.settle();
  const after = cpuSeconds(pids) ?? {};
  await started;
  system.check();
  const counted = commands - first.count;
  const cpu = Object.fromEntries(Object.keys(before).map((name) => [name, ((after[name] - before[name]) * 1e6) / counted]));
  return { perSecond: counted / seconds, cpu };
}
