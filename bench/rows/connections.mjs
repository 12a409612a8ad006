import { interleaved } from '../lib/rounds.mjs';

export const title = 'throughput over connections';

const SYSTEMS = /** @type {const} */ (['ours', 'plain', 'direct']);

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { seriesRounds, seconds, connections }) {
  /** @type {Record<string, number[][]>} */
  const points = Object.fromEntries(SYSTEMS.map((name) => [name, []]));
  for (const count of connections) {
    const workload = { name: 'addNotification', recipients: 2 };
    const load = { operation: 'notifications/add', workload, connections: count, seconds };
    const found = await interleaved(laboratory, [...SYSTEMS], seriesRounds, () => load);
    for (const name of SYSTEMS) points[name].push([count, found[name].perSecond]);
  }
  return {
    plots: [
      {
        file: 'throughput.svg',
        title: 'notifications/add, 2 recipients',
        x: { label: 'connections', logarithmic: true },
        y: { label: 'calls a second' },
        series: SYSTEMS.map((name) => ({ name, points: points[name] })),
      },
    ],
  };
}
