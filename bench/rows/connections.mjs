import { interleaved } from '../lib/rounds.mjs';

export const title = 'throughput over connections';

const SYSTEMS = ['ours', 'plain', 'direct'];

export async function run(laboratory, { seriesRounds, seconds, connections }) {
  const points = Object.fromEntries(SYSTEMS.map((name) => [name, []]));
  for (const count of connections) {
    const workload = { name: 'addNotification', recipients: 2 };
    const load = { operation: 'notifications/add', workload, connections: count, seconds };
    const found = await interleaved(laboratory, SYSTEMS, seriesRounds, () => load);
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
