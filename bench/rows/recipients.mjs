import { cpuTable } from '../lib/findings.mjs';
import { interleaved } from '../lib/rounds.mjs';
import { spread, whole } from '../lib/statistics.mjs';

export const title = 'notifications/add, 100 and 1000 recipients';

const TARGETS = [
  { recipients: 100, connections: 32, least: 45_000, stretch: 60_000 },
  { recipients: 1000, connections: 8, least: 60_000, stretch: 80_000 },
];

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds }) {
  /** @type {Required<Pick<import('../lib/findings.mjs').Findings, 'verdicts' | 'tables'>>} */
  const findings = { verdicts: [], tables: [] };
  for (const { recipients, connections, least, stretch } of TARGETS) {
    const workload = { name: 'addNotification', recipients };
    const load = { operation: 'notifications/add', workload, connections, seconds };
    const found = await interleaved(laboratory, ['ours'], rounds, () => load);
    /** @param {{ perSecond: number }} run */
    const rows = (run) => run.perSecond * recipients;
    const what = `notifications/add, ${recipients} recipients, ${connections} connections`;
    findings.verdicts.push({
      what,
      target: `at least ${whole(least)} recipient rows a second, stretch ${whole(stretch)}`,
      reached: `${whole(rows(found.ours))}/s`,
      spread: spread(found.ours.runs, rows),
      met: rows(found.ours) >= least,
    });
    findings.tables.push(cpuTable(what, found));
  }
  return findings;
}
