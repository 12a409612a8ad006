import { cpuTable } from '../lib/findings.mjs';
import { measure } from '../lib/load.mjs';
import { spread, summaryOf, two, whole } from '../lib/statistics.mjs';
import { buildWithoutEvents } from '../lib/without-events.mjs';

export const title = 'events of notifications/add';

const MOST_COST = 0.15;
/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds }) {
  const load = { operation: 'notifications/add', workload: { name: 'addNotification', recipients: 2 }, seconds };
  const dists = { ours: undefined, without: await buildWithoutEvents() };
  /** @type {Record<'ours' | 'without', import('../lib/load.mjs').Run[]>} */
  const runs = { ours: [], without: [] };
  for (let round = 0; round < rounds; round++) {
    /** @type {('ours' | 'without')[]} */
    const order = round % 2 === 0 ? ['ours', 'without'] : ['without', 'ours'];
    // One at a time: they would take commands from the same queue.
    for (const name of order) {
      const system = await laboratory.freshSystem('ours', { dist: dists[name] });
      runs[name].push(await measure(laboratory, system, load));
    }
  }
  await laboratory.stopSystem('ours');
  const found = { ours: summaryOf(runs.ours), without: summaryOf(runs.without) };
  const { ours, without } = found;
  const cost = 1 - ours.perSecond / without.perSecond;
  return {
    verdicts: [
      {
        what: `${title}: what they cost of its throughput`,
        target: `under ${MOST_COST * 100} %`,
        reached: `${two(cost * 100)} % (${whole(ours.perSecond)}/s instead of ${whole(without.perSecond)}/s)`,
        spread: `${spread(
          ours.runs.map((run, round) => 1 - run.perSecond / without.runs[round].perSecond),
          (share) => share * 100,
          two,
        )} %`,
        met: cost < MOST_COST,
      },
    ],
    tables: [cpuTable(title, found)],
  };
}
