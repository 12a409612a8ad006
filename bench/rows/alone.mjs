import { cpuTable } from '../lib/findings.mjs';
import { interleaved } from '../lib/rounds.mjs';
import { spread, two } from '../lib/statistics.mjs';

export const title = 'notifications/add, 2 recipients, 1 connection';

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds }) {
  const workload = { name: 'addNotification', recipients: 2 };
  const load = { operation: 'notifications/add', workload, connections: 1, seconds };
  const found = await interleaved(laboratory, ['ours', 'plain', 'direct'], rounds, () => load);
  const { ours, plain, direct } = found;
  const ratio = ours.p50 / plain.p50;
  return {
    verdicts: [
      {
        what: `${title}: p50 against the plain build's`,
        target: 'at most 0.87 ×, stretch 0.8 ×',
        reached: `${two(ratio)} × (${two(ours.p50)} ms to ${two(plain.p50)} ms; direct ${two(direct.p50)} ms)`,
        spread: `${spread(ours.runs, ({ p50 }) => p50, two)} ms`,
        met: ratio <= 0.87,
      },
    ],
    tables: [cpuTable(title, found)],
  };
}
