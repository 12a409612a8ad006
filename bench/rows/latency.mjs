import { report } from '../../scripts/checkout/progress.mjs';
import { FailedRun, measure } from '../lib/load.mjs';
import { two, whole } from '../lib/statistics.mjs';

export const title = 'latency over load';

/** Share of the rate that a system has to answer, to have kept up with it. */
const KEPT = 0.8;
const SYSTEMS = /** @type {const} */ (['ours', 'plain', 'direct']);

/**
 * Open loop: calls come when they come, and wait when the system is behind.
 * @param {import('../lib/laboratory.mjs').Laboratory} laboratory
 * @param {import('../lib/modes.mjs').Mode} mode
 */
export async function run(laboratory, { seconds, shares }) {
  const base = { operation: 'notifications/add', workload: { name: 'addNotification', recipients: 2 }, seconds };
  /** @type {Record<string, (import('../lib/load.mjs').Run & { ratePerSecond: number })[]>} */
  const results = {};
  for (const name of SYSTEMS) {
    const system = await laboratory.system(name);
    const { perSecond: peak } = await measure(laboratory, system, base);
    results[name] = [];
    for (const share of shares) {
      const ratePerSecond = peak * share;
      const found = await measure(laboratory, system, { ...base, ratePerSecond });
      // Asked for and not done: the latencies are those of another load. The line ends before it.
      if (found.perSecond < ratePerSecond * KEPT) {
        report(`    ${name} did not keep up with ${whole(ratePerSecond)}/s`);
        break;
      }
      results[name].push({ ...found, ratePerSecond });
      report(`    ${name} at ${whole(ratePerSecond)}/s: p50 ${two(found.p50)} ms, p99 ${two(found.p99)} ms`);
    }
    if (results[name].length === 0) throw new FailedRun(`${name} kept up with no rate`);
  }
  /** @param {string} name @param {'p50' | 'p99'} quantile @returns {import('../lib/svg.mjs').Plot['series'][number]} */
  const series = (name, quantile) => ({
    name: `${name} ${quantile}`,
    points: results[name].map((found) => [found.ratePerSecond, found[quantile]]),
  });
  return {
    plots: [
      {
        file: 'latency.svg',
        title: 'notifications/add, 2 recipients, up to 64 at a time',
        x: { label: 'calls a second' },
        y: { label: 'milliseconds', logarithmic: true },
        series: SYSTEMS.flatMap((name) => [series(name, 'p50'), series(name, 'p99')]),
      },
    ],
  };
}
