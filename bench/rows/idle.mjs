import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSeconds } from '../lib/proc.mjs';
import { FailedRun } from '../lib/load.mjs';
import { two, whole } from '../lib/statistics.mjs';

export const title = 'idle system';

const MOST_PERCENT = 1;
/** Half a minute after a process has become quiet V8 collects its garbage, once. That is no idling: it is made to, and this many times `idleSeconds` pass. */
const REST = 1.5;

export async function run(laboratory, { idleSeconds }) {
  const system = await laboratory.system('ours');
  await system.settle();
  await system.heap();
  await sleep(REST * idleSeconds * 1000);
  const [cpuBefore, statementsBefore] = [cpuSeconds(system.pids), await transactions(laboratory, system)];
  if (!cpuBefore) throw new FailedRun('CPU times can be read on Linux only');
  await sleep(idleSeconds * 1000);
  const [cpuAfter, statementsAfter] = [cpuSeconds(system.pids), await transactions(laboratory, system)];
  const percent = (name) => ((cpuAfter[name] - cpuBefore[name]) / idleSeconds) * 100;
  const all = Object.keys(cpuAfter).reduce((sum, name) => sum + percent(name), 0);
  const perMinute = ((statementsAfter - statementsBefore) / idleSeconds) * 60;
  system.check();
  return {
    verdicts: [
      {
        what: `${title}: all processes of ours together, over ${idleSeconds} s`,
        target: `under ${MOST_PERCENT} % of a core`,
        reached: `${two(all)} %, ${whole(perMinute)} transactions a minute`,
        spread: Object.keys(cpuAfter)
          .map((name) => `${name} ${two(percent(name))} %`)
          .join(', '),
        met: all < MOST_PERCENT,
      },
    ],
  };
}

/** Its own, from a session of another database. Sessions tell theirs with a delay of up to a second. */
async function transactions({ admin }, { place }) {
  const { rows } = await admin.query('SELECT xact_commit + xact_rollback AS done FROM pg_stat_database WHERE datname = $1', [
    place.database,
  ]);
  return Number(rows[0].done);
}
