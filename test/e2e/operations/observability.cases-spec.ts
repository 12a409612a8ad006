import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { metricNamesOf } from '@app/testing/promql';
import type { System } from '@app/testing/system/system';

const FOLDER = 'deploy/observability';
/** Without the external label it is the path in this repository. */
const RUNBOOKS = '{{ with $externalLabels.runbooks }}{{ . }}{{ else }}docs/runbooks{{ end }}';
/** Prometheus itself has these. */
const BUILT_IN = ['up', 'ALERTS'];

interface Rule {
  record?: string;
  alert?: string;
  expr: string;
  annotations?: Record<string, string>;
}

interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[];
}

const read = (...path: string[]) => readFileSync(join(FOLDER, ...path), 'utf8');
const rules = () => (parse(read('rules.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);

/** Every expression in the rules and dashboards, by where it stands. */
function expressions(): [string, string][] {
  const ofRules = rules().map(({ record, alert, expr }): [string, string] => [record ?? alert ?? '', expr]);
  const ofPanels = readdirSync(join(FOLDER, 'dashboards')).flatMap((file) =>
    (JSON.parse(read('dashboards', file)) as Dashboard).panels.flatMap(({ title, targets }) =>
      targets.map(({ expr }): [string, string] => [`${file}: ${title}`, expr]),
    ),
  );
  return [...ofRules, ...ofPanels];
}

/** To be called last: a series with labels appears with its first value. */
export const rulesAndDashboards = (running: () => System): void =>
  describe('rules and dashboards', () => {
    it('name only metrics that a process has', async () => {
      const texts = await Promise.all(Object.values(running().services).map((service) => service.metrics()));
      const families = texts.flatMap((text) => [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)]);
      const recorded = rules().flatMap(({ record }) => record ?? []);
      const known = new Set([...BUILT_IN, ...recorded]);
      for (const [, name = '', type] of families) {
        if (type === 'histogram') for (const part of ['bucket', 'count', 'sum']) known.add(`${name}_${part}`);
        else known.add(name);
      }
      const missing = expressions().flatMap(([where, expr]) =>
        metricNamesOf(expr).flatMap((name) => (known.has(name) ? [] : `${where}: ${name}`)),
      );
      expect(missing).toEqual([]);
    });

    it('are at most 15 alerts, each with an action, a runbook and a recording of its fault', () => {
      const alerts = rules().filter(({ alert }) => alert);
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
  });
