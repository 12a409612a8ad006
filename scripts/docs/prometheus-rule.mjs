import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { ROOT } from '../checkout/project.mjs';

const RULES = 'deploy/observability/rules.yml';

/** @typedef {{ record?: string, alert?: string, expr: string, labels?: object, annotations?: object }} Rule */

/** @returns {{ groups: { name: string, rules: Rule[] }[] }} */
export const prometheusRules = () => parse(readFileSync(join(ROOT, RULES), 'utf8'));

/** The rules of deploy/observability for the Prometheus operator. */
export function prometheusRule() {
  const rule = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'collaboration-backend' },
    spec: prometheusRules(),
  };
  return `# Written from ${RULES} by npm run manifests.\n${stringify(rule, { lineWidth: 0, singleQuote: true })}`;
}
