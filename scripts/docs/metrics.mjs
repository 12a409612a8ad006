import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { SERVICES, mainOf } from '../checkout/project.mjs';
import { modulesOf } from '../dev/module-graph.mjs';
import { code, table } from './table.mjs';

/** @typedef {{ name: string, help: string, type: string, labelNames: string[], services: string[] }} Metric */

const require = createRequire(import.meta.url);

/** @param {string} path */
const codeOf = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);

const DECLARATION = /new _promclient\.(Counter|Gauge|Histogram|Summary)\(/;

/** @returns {{ own: Metric[], default: Metric[] }} all metrics of the services, and those that prom-client has of itself */
function metrics() {
  const modules = new Map(SERVICES.map((service) => [service, [...modulesOf(mainOf(service), codeOf)].filter(declares)]));
  const declaring = [...new Set([...modules.values()].flat())];
  const elsewhere = declaring.filter((path) => !path.endsWith('/metrics.js'));
  if (elsewhere.length > 0) throw new Error(`a file with metrics has the name metrics.ts, and these have not: ${elsewhere}.`);
  const { register, collectDefaultMetrics } = require('prom-client');
  const loaded = declaring.map((path) => require(path));
  // Metrics that are declared when a process starts.
  for (const one of loaded) {
    one.TransportMetrics?.of(register);
    one.describeProcess?.('', { answers: async () => [] });
  }
  const own = [...register.getMetricsAsArray()];
  collectDefaultMetrics();
  /** @param {any} metric */
  const described = ({ name, help, constructor, labelNames }) => ({
    name,
    help,
    type: constructor.name.toLowerCase(),
    labelNames,
    services: SERVICES.filter((service) => modules.get(service)?.some((path) => codeOf(path)?.includes(`name: '${name}'`))),
  });
  const rest = register.getMetricsAsArray().filter((/** @type {any} */ one) => !own.includes(one));
  register.clear();
  return { own: own.map(described).sort(byName), default: rest.map(described).sort(byName) };
}

/** @param {string} path */
const declares = (path) => DECLARATION.test(codeOf(path) ?? '');

/** @param {Metric} a @param {Metric} b */
const byName = (a, b) => (a.name < b.name ? -1 : 1);

/** One table of the metrics of this system, and one of those of every process with prom-client. */
export function metricsTables() {
  const all = metrics();
  const rows = all.own.map(({ name, help, type, labelNames, services }) => [
    code(name),
    type,
    labelNames.map(code).join(', '),
    help,
    services.length === SERVICES.length ? 'all' : services.join(', '),
  ]);
  return [
    table(['Metric', 'Type', 'Labels', 'Meaning', 'Processes'], rows),
    'All processes also have the metrics that prom-client reads from Node and the system:',
    table(
      ['Metric', 'Type', 'Labels', 'Meaning'],
      all.default.map(({ name, help, type, labelNames }) => [code(name), type, labelNames.map(code).join(', '), help]),
    ),
  ].join('\n\n');
}
