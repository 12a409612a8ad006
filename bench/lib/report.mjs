import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { between } from '../../scripts/docs/between.mjs';
import { table } from '../../scripts/docs/table.mjs';
import { report } from '../../scripts/checkout/progress.mjs';
import { ROOT } from '../../scripts/checkout/project.mjs';
import { whole } from './statistics.mjs';
import { chart } from './svg.mjs';

const DOCUMENT = join(ROOT, 'docs/benchmarks.md');
const PLOTS = join(ROOT, 'docs/benchmarks');

/** The page has a part for each version of Node. */
const [MAJOR] = process.versions.node.split('.');

/**
 * @typedef {import('./findings.mjs').Findings & { name: string, title: string, stolen?: number, failure?: string }} Result of a row
 */

/** @param {Result[]} results findings of rows, or what they failed with @returns {string} for the terminal */
export function printed(results) {
  const parts = [verdictTable(results), ...tablesOf(results)];
  for (const { name, failure } of results) if (failure) parts.push(`${name} has no figures: ${failure}`);
  return parts.join('\n\n');
}

/**
 * @param {Result[]} results
 * @param {string} how the command of the run
 * @param {import('./laboratory.mjs').Laboratory} laboratory
 * @returns {Promise<string>} what stands between the markers in the document
 */
export async function document(results, how, laboratory) {
  const { rows: postgres } = await laboratory.admin.query(
    `SELECT current_setting('server_version') AS version, current_setting('shared_buffers') AS buffers`,
  );
  const rabbitmq = await laboratory.rabbit.control('rabbitmqctl', 'version');
  const [processor] = cpus();
  const machine = [
    `${cpus().length} × ${processor.model.trim()}`,
    `${Math.round(totalmem() / 2 ** 30)} GiB`,
    process.platform,
    `Node ${process.versions.node}`,
    `PostgreSQL ${postgres[0].version} with shared_buffers of ${postgres[0].buffers}`,
    `RabbitMQ ${rabbitmq}`,
  ];
  const about = `Run of ${new Date().toISOString().slice(0, 10)} by \`${how}\`. Everything, clients included, on one machine: ${machine.join(', ')}.`;
  const stolen = results.flatMap(({ stolen }) => stolen ?? []);
  const others = stolen.length > 0 ? ` ${othersHad(stolen)}, by row.` : '';
  const plots = plotsOf(results).map((plot) => `![${plot.title}](benchmarks/${fileOf(plot)})`);
  return [about + others, verdictTable(results), ...plots, ...tablesOf(results)].join('\n\n');
}

/** @param {number[]} shares see watchStolen */
export function othersHad(shares) {
  const [least, most] = [Math.min(...shares), Math.max(...shares)].map((share) => whole(share * 100));
  return `Other machines on the same host had ${least === most ? least : `${least}–${most}`} % of the processors' time`;
}

/** @param {Result[]} results @param {string} content */
export function writeDocument(results, content) {
  writeFileSync(DOCUMENT, between(`figures-node-${MAJOR}`, readFileSync(DOCUMENT, 'utf8'), content));
  mkdirSync(PLOTS, { recursive: true });
  for (const plot of plotsOf(results)) writeFileSync(join(PLOTS, fileOf(plot)), chart(plot));
  report('docs/benchmarks.md and its plots are written');
}

/** @param {import('./svg.mjs').Plot} plot */
const fileOf = ({ file }) => `node-${MAJOR}-${file}`;

/** @param {Result[]} results */
const plotsOf = (results) => results.flatMap(({ plots = [] }) => plots);

/** @param {Result[]} results */
const tablesOf = (results) =>
  results.flatMap(({ tables = [] }) => tables).map(({ title, head, rows }) => `**${title}**\n\n${table(head, rows)}`);

/** @param {Result[]} results */
function verdictTable(results) {
  const verdicts = results.flatMap(({ verdicts = [] }) => verdicts);
  if (verdicts.length === 0) return '';
  return table(
    ['what', 'target', 'reached', 'lowest–highest', 'met'],
    verdicts.map(({ what, target, reached, spread, met }) => [what, target, reached, spread, met ? 'yes' : '**no**']),
  );
}
