import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { groupingsOf, selectorsOf } from '@app/testing/promql';

const FOLDER = 'deploy/observability';
/** Without the external label it is the path in this repository. */
const RUNBOOKS = '{{ with $externalLabels.runbooks }}{{ . }}{{ else }}docs/runbooks{{ end }}';
/** Prometheus itself adds these to every series that it reads. */
const OF_TARGETS = ['job', 'instance'];

interface Rule {
  record?: string;
  alert?: string;
  expr: string;
  annotations?: Record<string, string>;
}

interface Dashboard {
  panels: { title: string; targets: { expr: string; legendFormat: string }[] }[];
}

const read = (...path: string[]) => readFileSync(join(FOLDER, ...path), 'utf8');
const rules = (parse(read('rules.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);

/** The labels of each metric, from the page that is generated from the code, and of each recorded series. */
const LABELS = new Map<string, string[]>([
  ['up', OF_TARGETS],
  ['ALERTS', ['alertname', 'alertstate']],
]);
for (const [, metric, type, labels] of readFileSync('docs/metrics.md', 'utf8').matchAll(/^\| `(\w+)` \| (\w+) \| ([^|]*) \|/gm)) {
  const own = [...[...labels.matchAll(/\w+/g)].map(([label]) => label), ...OF_TARGETS];
  if (type !== 'histogram') LABELS.set(metric, own);
  else for (const part of ['bucket', 'count', 'sum']) LABELS.set(`${metric}_${part}`, part === 'bucket' ? [...own, 'le'] : own);
}
for (const { record, expr } of rules) if (record) LABELS.set(record, labelsOf(expr));

/** Labels of the result: those of the outermost aggregation, and without one those of the metric. */
function labelsOf(expr: string): string[] {
  const [grouping] = groupingsOf(expr);
  if (grouping) return grouping.labels.filter((label) => label !== 'le');
  return /\b(sum|max|min|count)\s*\(/.test(expr) ? [] : (LABELS.get(selectorsOf(expr)[0].metric) ?? []);
}

/** Every expression, with the text that shows labels of its result. */
const EXPRESSIONS: [where: string, expr: string, shown: string][] = [
  ...rules.map(({ record, alert, expr, annotations = {} }): [string, string, string] => [
    record ?? alert ?? '',
    expr,
    [annotations.summary, annotations.action].join(' '),
  ]),
  ...readdirSync(join(FOLDER, 'dashboards')).flatMap((file) =>
    (JSON.parse(read('dashboards', file)) as Dashboard).panels.flatMap(({ title, targets }) =>
      targets.map(({ expr, legendFormat }): [string, string, string] => [`${file}: ${title}`, expr, legendFormat]),
    ),
  ),
];

it('has at most 15 alerts, each with an action, a runbook and a recording of its fault', () => {
  const alerts = rules.filter(({ alert }) => alert);
  // A name may have two rules, with one page.
  expect(new Set(alerts.map(({ alert }) => alert)).size).toBeLessThanOrEqual(15);
  const recordings = readdirSync(join(FOLDER, 'tests')).map((file) => read('tests', file));
  for (const { alert = '', annotations } of alerts) {
    expect(annotations?.action).toMatch(/\.$/);
    expect([alert, existsSync(`docs/runbooks/${alert}.md`)]).toEqual([alert, true]);
    expect(annotations?.runbook_url).toBe(`${RUNBOOKS}/${alert}.md`);
    expect([alert, recordings.some((text) => text.includes(`{alertname="${alert}"}`))]).toEqual([alert, true]);
  }
});

describe.each(EXPRESSIONS)('%s: %s', (_, expr, shown) => {
  const selectors = selectorsOf(expr);

  it('reads the metrics of this system only', () => {
    expect(selectors).not.toEqual([]);
    // A recorded series has its job in its rule, and an alert has a name of this system.
    const open = selectors.filter(
      ({ metric, labels }) => !metric.includes(':') && !labels.includes(metric === 'ALERTS' ? 'alertname' : 'job'),
    );
    expect(open).toEqual([]);
  });

  it('names only metrics of that page, and labels that they have', () => {
    expect(selectors.filter(({ metric }) => !LABELS.has(metric))).toEqual([]);
    const named = [
      ...selectors,
      ...groupingsOf(expr).flatMap(({ labels, body }) => selectorsOf(body).map(({ metric }) => ({ metric, labels }))),
    ];
    const unknown = named.flatMap(({ metric, labels }) =>
      labels.flatMap((label) => (LABELS.get(metric)?.includes(label) ? [] : `${metric} has no label ${label}`)),
    );
    expect(unknown).toEqual([]);
  });

  it('shows only labels that its result has', () => {
    const wanted = [...shown.matchAll(/\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}/g)].map(([, label]) => label);
    expect(wanted.filter((label) => !labelsOf(expr).includes(label))).toEqual([]);
  });
});
