import { cpuTable } from '../lib/findings.mjs';
import { interleaved } from '../lib/rounds.mjs';
import { spread, two, whole } from '../lib/statistics.mjs';

export const title = 'notifications/add, 2 recipients, 64 connections';

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds }) {
  const load = { operation: 'notifications/add', workload: { name: 'addNotification', recipients: 2 }, seconds };
  const found = await interleaved(laboratory, ['ours', 'plain', 'direct'], rounds, () => load);
  const { ours, plain, direct } = found;
  /** @param {string} name @param {import('../lib/statistics.mjs').Summary} other @param {number} least @param {number} stretch */
  const compared = (name, other, least, stretch) => ({
    what: `${title}: against the ${name}`,
    target: `at least ${least} ×, stretch ${stretch} ×`,
    reached: `${two(ours.perSecond / other.perSecond)} × (${whole(ours.perSecond)}/s to ${whole(other.perSecond)}/s)`,
    // Of the same round: what disturbs the machine for longer than a round disturbs both.
    spread: `${spread(
      ours.runs.map((run, round) => run.perSecond / other.runs[round].perSecond),
      (ratio) => ratio,
      two,
    )} ×`,
    met: ours.perSecond / other.perSecond >= least,
  });
  return {
    verdicts: [compared('plain build', plain, 4, 5), compared('direct service', direct, 0.5, 0.6)],
    tables: [
      {
        title: `${title}: medians`,
        head: ['system', 'calls a second', 'lowest–highest', 'p50 ms', 'p99 ms', 's until events are out'],
        rows: Object.entries(found).map(([name, { perSecond, p50, p99, settled, runs }]) => [
          name,
          whole(perSecond),
          spread(runs, (one) => one.perSecond),
          two(p50),
          two(p99),
          two(settled),
        ]),
      },
      cpuTable(title, found),
    ],
  };
}
