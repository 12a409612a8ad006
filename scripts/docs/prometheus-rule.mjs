import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { ROOT } from '../checkout/project.mjs';

/** The rules of deploy/observability/rules.yml for the Prometheus operator. */
export function prometheusRule() {
  const spec = parse(readFileSync(join(ROOT, 'deploy/observability/rules.yml'), 'utf8'));
  const labels = { 'app.kubernetes.io/part-of': 'collaboration-backend' };
  const rule = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'collaboration-backend', labels },
    spec,
  };
  return `# Generated from rules.yml by npm run docs:generate.\n${stringify(rule, { lineWidth: 0, singleQuote: true })}`;
}
