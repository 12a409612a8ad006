import { cpuTable } from '../lib/findings.mjs';
import { isFailure } from '../lib/load.mjs';
import { interleaved } from '../lib/rounds.mjs';
import { spread, two, whole } from '../lib/statistics.mjs';

export const title = 'notifications/add, 2 recipients, 64, 256 and 1000 connections';

/** Ratios of calls a second that are to be reached. */
const LOADS = [
  { connections: 64, plain: { least: 2.7, stretch: 3 }, direct: { least: 0.53, stretch: 0.6 } },
  { connections: 256, direct: { least: 0.75, stretch: 0.85 } },
  { connections: 1000 },
];
/** Processor microseconds of a call at 64 connections: all processes of ours, broker and database. */
const CPU = { least: 470, stretch: 420 };

/** @typedef {import('../lib/statistics.mjs').Summary} Summary */

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds }) {
  /** @type {Required<Pick<import('../lib/findings.mjs').Findings, 'verdicts' | 'tables'>>} */
  const findings = { verdicts: [], tables: [] };
  for (const { connections, ...targets } of LOADS) {
    const name = `notifications/add, 2 recipients, ${connections} connections`;
    const workload = { name: 'addNotification', recipients: 2 };
    const load = { operation: 'notifications/add', workload, connections, seconds };
    /** @type {Record<'ours' | 'plain' | 'direct', Summary>} */
    let found;
    try {
      found = await interleaved(laboratory, ['ours', 'plain', 'direct'], rounds, () => load);
    } catch (error) {
      // The figures of the other loads stay good.
      if (!isFailure(error)) throw error;
      await laboratory.discardSystems();
      findings.tables.push({ title: name, head: ['no figures'], rows: [[error.message]] });
      if (targets.plain ?? targets.direct) findings.verdicts.push(failed(name, error.message));
      continue;
    }
    const { plain, direct } = targets;
    if (plain) findings.verdicts.push(compared(name, 'plain build', found.ours, found.plain, plain));
    if (direct) findings.verdicts.push(compared(name, 'direct service', found.ours, found.direct, direct));
    if (plain) findings.verdicts.push(processorOf(name, found.ours));
    findings.tables.push(medians(name, found), cpuTable(name, found));
  }
  return findings;
}

/** @param {string} what @param {string} message */
const failed = (what, message) => ({ what, target: 'every answer 200', reached: message, spread: '', met: false });

/** @param {string} name @param {string} other @param {Summary} ours @param {Summary} theirs @param {{ least: number, stretch: number }} target */
function compared(name, other, ours, theirs, { least, stretch }) {
  const ratio = ours.perSecond / theirs.perSecond;
  return {
    what: `${name}: against the ${other}`,
    target: `at least ${least} ×, stretch ${stretch} ×`,
    reached: `${two(ratio)} × (${whole(ours.perSecond)}/s to ${whole(theirs.perSecond)}/s)`,
    // Of the same round: what disturbs the machine for longer than a round disturbs both.
    spread: `${spread(
      ours.runs.map((run, round) => run.perSecond / theirs.runs[round].perSecond),
      (one) => one,
      two,
    )} ×`,
    met: ratio >= least,
  };
}

/** @param {string} name @param {Summary} ours */
function processorOf(name, ours) {
  /** @param {{ cpu: Record<string, number> }} run */
  const total = ({ cpu }) => Object.entries(cpu).reduce((sum, [process, used]) => (process === 'client' ? sum : sum + used), 0);
  return {
    what: `${name}: processor of all processes`,
    target: `at most ${CPU.least} µs a call, stretch ${CPU.stretch} µs`,
    reached: `${whole(total(ours))} µs`,
    spread: `${spread(ours.runs, total)} µs`,
    met: total(ours) <= CPU.least,
  };
}

/** @param {string} name @param {Record<string, Summary>} found */
const medians = (name, found) => ({
  title: `${name}: medians`,
  head: ['system', 'calls a second', 'lowest–highest', 'p50 ms', 'p99 ms', 's until events are out'],
  rows: Object.entries(found).map(([system, { perSecond, p50, p99, settled, runs }]) => [
    system,
    whole(perSecond),
    spread(runs, (one) => one.perSecond),
    two(p50),
    two(p99),
    two(settled),
  ]),
});
