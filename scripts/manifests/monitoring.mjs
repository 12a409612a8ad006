import { podsOf } from './cluster.mjs';
import { nameOf } from './overlays.mjs';
import { prometheusRules } from '../docs/prometheus-rule.mjs';

/** @typedef {import('./overlays.mjs').Manifest} Manifest */
/** @typedef {{ sourceLabels: string[], regex: string, targetLabel: string, replacement: string }} Relabeling */

/**
 * Whether each process has exactly one scrape, under a job that the rules and dashboards name.
 * @param {Manifest[]} manifests
 * @param {import('./cluster.mjs').Contents} contents
 * @returns {string[]}
 */
export function monitoringProblems(manifests, contents) {
  const monitors = manifests.filter(({ kind }) => kind === 'PodMonitor');
  if (monitors.length === 0) return [];
  const known = jobsOfRules();
  const problems = manifests.some(({ kind }) => kind === 'PrometheusRule')
    ? []
    : ['a PodMonitor without the alerts: no PrometheusRule'];
  /** @type {Map<string, string[]>} */
  const monitorsOf = new Map();
  for (const monitor of monitors)
    for (const { port, relabelings = [] } of monitor.spec.podMetricsEndpoints)
      for (const { owner, labels, ports } of podsOf(monitor.spec.selector.matchLabels, contents)) {
        if (!ports.includes(port)) continue;
        monitorsOf.set(owner, [...(monitorsOf.get(owner) ?? []), nameOf(monitor)]);
        const named = labels[monitor.spec.jobLabel] ?? `${contents.namespace}/${monitor.metadata.name}`;
        const job = relabelings.reduce(relabeled, named);
        if (!known.has(job)) problems.push(`${nameOf(monitor)}: ${owner} gets the job ${job}, which no rule names`);
      }
  for (const [owner, names] of monitorsOf)
    if (names.length > 1) problems.push(`${owner} is scraped more than once: ${names.join(', ')}`);
  return problems;
}

/** @param {string} job @param {Relabeling} relabeling */
const relabeled = (job, { regex, replacement }) => job.replace(new RegExp(`^(?:${regex})$`), replacement);

/** The jobs that the rules expect. @returns {Set<string>} */
function jobsOfRules() {
  const expressions = prometheusRules().groups.flatMap(({ rules }) => rules.map(({ expr }) => expr));
  return new Set(expressions.flatMap((expr) => [...expr.matchAll(/\bjob=~?"([^"]+)"/g)].flatMap(([, jobs]) => jobs.split('|'))));
}
