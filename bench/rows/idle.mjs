import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSeconds } from '../lib/proc.mjs';
import { FailedRun } from '../lib/load.mjs';
import { median, spread, two, whole } from '../lib/statistics.mjs';

export const title = 'idle system';

const MOST_PERCENT = 1;
/** This number of times `idleSeconds` pass before. */
const REST = 1.5;

/**
 * A median of rounds like the other rows, one after the other. V8 collects the garbage of a process that has become quiet half a minute or more
 * after that, once or twice: the highest round shows it.
 * @param {import('../lib/laboratory.mjs').Laboratory} laboratory
 * @param {import('../lib/modes.mjs').Mode} mode
 */
export async function run(laboratory, { rounds, idleSeconds }) {
  const system = await laboratory.system('ours');
  await system.settle();
  await sleep(REST * idleSeconds * 1000);
  /** @type {{ percents: Record<string, number>, transactions: number }[]} */
  const found = [];
  while (found.length < rounds) found.push(await idle(laboratory, system, idleSeconds));
  system.check();
  const percents = found.map(({ percents }) => Object.values(percents).reduce((sum, percent) => sum + percent, 0));
  /** @param {string} name */
  const each = (name) => `${name} ${two(median(found.map(({ percents }) => percents[name])))} %`;
  const all = median(percents);
  const perMinute = median(found.map(({ transactions }) => transactions));
  return {
    verdicts: [
      {
        what: `${title}: all processes of ours together, over ${idleSeconds} s`,
        target: `under ${MOST_PERCENT} % of a core`,
        reached: `${two(all)} % (${Object.keys(found[0].percents).map(each).join(', ')}), ${whole(perMinute)} transactions a minute`,
        spread: `${spread(percents, (percent) => percent, two)} %`,
        met: all < MOST_PERCENT,
      },
    ],
  };
}

/**
 * @param {import('../lib/laboratory.mjs').Laboratory} laboratory
 * @param {import('../lib/system.mjs').System} system
 * @param {number} seconds
 */
async function idle(laboratory, system, seconds) {
  const [cpuBefore, statementsBefore] = [cpuSeconds(system.pids), await transactions(laboratory, system)];
  if (!cpuBefore) throw new FailedRun('CPU times can be read on Linux only');
  await sleep(seconds * 1000);
  const [cpuAfter, statementsAfter] = [cpuSeconds(system.pids), await transactions(laboratory, system)];
  return {
    percents: Object.fromEntries(
      Object.keys(cpuBefore).map((name) => [name, (((cpuAfter?.[name] ?? NaN) - cpuBefore[name]) / seconds) * 100]),
    ),
    transactions: ((statementsAfter - statementsBefore) / seconds) * 60,
  };
}

/**
 * Its own, from a session of another database. Sessions report theirs with a delay of up to a second.
 * @param {import('../lib/laboratory.mjs').Laboratory} options
 * @param {import('../lib/system.mjs').System} options
 */
async function transactions({ admin }, { place }) {
  const { rows } = await admin.query('SELECT xact_commit + xact_rollback AS done FROM pg_stat_database WHERE datname = $1', [
    place.database,
  ]);
  return Number(rows[0].done);
}
