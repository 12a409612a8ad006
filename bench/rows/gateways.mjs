import { cpus } from 'node:os';
import { cpuTable } from '../lib/findings.mjs';
import { measure } from '../lib/load.mjs';
import { report } from '../../scripts/checkout/progress.mjs';
import { median, spread, summaryOf, two, whole } from '../lib/statistics.mjs';

export const title = 'notifications/add, 2 recipients, 1 and 2 gateways at 256 and 1000 connections';

const COUNTS = /** @type {const} */ ([1, 2]);
const CONNECTIONS = [256, 1000];
/** How often two gateways reach the rate of one, with this number of connections. */
const TARGET = { connections: 256, least: 1.3 };
/** A processor that works for this share of the time has no more to give: the rest is what waiting for others takes. */
const FULL = 0.9;

/** @typedef {import('../lib/statistics.mjs').Summary} Summary */

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds }) {
  /** @type {Required<Pick<import('../lib/findings.mjs').Findings, 'verdicts' | 'tables'>>} */
  const findings = { verdicts: [], tables: [] };
  const system = await laboratory.freshSystem('ours');
  try {
    await system.addGateway();
    const urls = [...system.urls];
    for (const connections of CONNECTIONS) {
      const workload = { name: 'addNotification', recipients: 2 };
      const load = { operation: 'notifications/add', workload, connections, seconds };
      /** @type {Record<1 | 2, import('../lib/load.mjs').Run[]>} */
      const runs = { 1: [], 2: [] };
      for (let round = 0; round < rounds; round++) {
        for (const count of round % 2 === 0 ? COUNTS : COUNTS.toReversed()) {
          // The other one goes on, and has next to nothing to do.
          system.urls = urls.slice(0, count);
          runs[count].push(await measure(laboratory, system, load));
        }
        const rates = COUNTS.map((count) => `${count}: ${whole(runs[count][round].perSecond)}/s`);
        report(`    ${connections} connections, round ${round + 1} of ${rounds}: ${rates.join(', ')}`);
      }
      const [one, both] = [summaryOf(runs[1]), summaryOf(runs[2])];
      const name = `notifications/add, 2 recipients, ${connections} connections`;
      if (connections === TARGET.connections) findings.verdicts.push(verdict(name, one, both));
      const found = { '1 gateway': one, '2 gateways': both };
      findings.tables.push(loadTable(name, found), cpuTable(`${name}, by gateways`, found));
    }
    return findings;
  } finally {
    await laboratory.stopSystem('ours');
  }
}

/** @param {string} name @param {Summary} one @param {Summary} both */
function verdict(name, one, both) {
  const ratio = both.perSecond / one.perSecond;
  const full = fullPart(both);
  return {
    what: `${name}: 2 gateways against 1`,
    target: `at least ${TARGET.least} ×, or what is full`,
    reached: `${two(ratio)} × (${whole(both.perSecond)}/s to ${whole(one.perSecond)}/s)${full ? `; full: ${full}` : ''}`,
    spread: `${spread(both.runs, (run, round) => run.perSecond / one.runs[round].perSecond, two)} ×`,
    met: ratio >= TARGET.least || full !== undefined,
  };
}

/** @param {Summary} summary @returns {string | undefined} what keeps it from being faster */
function fullPart(summary) {
  const machine = busyOf(summary);
  if (machine !== undefined && machine >= FULL) return `the machine, ${percent(machine)} of ${cpus().length} processors`;
  const [name, share] = Object.entries(sharesOf(summary)).sort(([, a], [, b]) => b - a)[0];
  // A process of Node has one thread for nearly all it does. The processes of the servers have many.
  return share >= FULL && !['postgres', 'rabbitmq'].includes(name) ? `${name}, ${percent(share)} of one processor` : undefined;
}

/** @param {string} name @param {Record<string, Summary>} found */
const loadTable = (name, found) => ({
  title: `${name}: medians, and how busy each process is`,
  head: ['system', 'calls a second', 'lowest–highest', 'p50 ms', 'p99 ms', 'machine', 'of one processor'],
  rows: Object.entries(found).map(([system, summary]) => [
    system,
    whole(summary.perSecond),
    spread(summary.runs, ({ perSecond }) => perSecond),
    two(summary.p50),
    two(summary.p99),
    percent(busyOf(summary)),
    Object.entries(sharesOf(summary))
      .map(([process, share]) => `${process} ${percent(share)}`)
      .join(', '),
  ]),
});

/** @param {Summary} summary share of the time of one processor, by process */
const sharesOf = ({ cpu, perSecond }) =>
  Object.fromEntries(Object.entries(cpu).map(([name, microseconds]) => [name, (microseconds * perSecond) / 1e6]));

/** @param {Summary} summary share of the time of all processors */
function busyOf({ runs }) {
  const shares = runs.flatMap(({ busy }) => busy ?? []);
  return shares.length > 0 ? median(shares) : undefined;
}

/** @param {number | undefined} share */
const percent = (share) => (share === undefined ? 'unknown' : `${whole(share * 100)} %`);
