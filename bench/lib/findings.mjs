import { whole } from './statistics.mjs';

/**
 * The findings of a row.
 * @typedef {object} Findings
 * @property {Verdict[]} [verdicts]
 * @property {{ title: string, head: string[], rows: string[][] }[]} [tables]
 * @property {import('./svg.mjs').Plot[]} [plots]
 */

/**
 * @typedef {object} Verdict
 * @property {string} what
 * @property {string} target
 * @property {string} reached
 * @property {string} spread
 * @property {boolean} met
 */

/**
 * CPU microseconds for each call, by system and process.
 * @param {string} title
 * @param {Record<string, { cpu: Record<string, number> }>} summaries
 */
export function cpuTable(title, summaries) {
  const rows = Object.entries(summaries).map(([system, { cpu }]) => {
    const total = Object.entries(cpu).reduce((sum, [name, used]) => (name === 'client' ? sum : sum + used), 0);
    const parts = Object.entries(cpu).map(([name, used]) => `${name} ${whole(used)}`);
    return [system, whole(total), parts.join(', ')];
  });
  return { title: `${title}: CPU microseconds for each call`, head: ['system', 'without the client', 'by process'], rows };
}
