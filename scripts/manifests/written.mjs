import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../checkout/project.mjs';
import { accountManifests } from './accounts.mjs';
import { prometheusRule } from '../docs/prometheus-rule.mjs';

const COMPONENTS = 'deploy/kubernetes/components';

/**
 * The manifests that are written from something else. Kustomize reads no file outside of the folder of a kustomization, hence the copies.
 * @returns {Record<string, string>} content by path
 */
export function writtenManifests() {
  /** @param {string} name */
  const configuration = (name) => readFileSync(join(ROOT, 'deploy/compose', name), 'utf8');
  return {
    [`${COMPONENTS}/rabbitmq-operator/accounts.yaml`]: accountManifests(),
    [`${COMPONENTS}/monitoring/prometheus-rule.yaml`]: prometheusRule(),
    [`${COMPONENTS}/broker/rabbitmq.conf`]: configuration('rabbitmq.conf'),
    [`${COMPONENTS}/broker/advanced.config`]: configuration('advanced.config'),
  };
}
