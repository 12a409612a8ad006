import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from '../checkout/project.mjs';
import { withDefaults } from '../containers/compose.mjs';
import { nameOf, podOf } from './overlays.mjs';

/** @typedef {import('./overlays.mjs').Manifest} Manifest */

/** Settings of the broker of compose that one of an operator has, too: those of docs/servers.md, and the memory at which it stops publishers. */
const BROKER_SETTINGS = [
  'vm_memory_high_watermark.absolute',
  'max_message_size',
  'background_gc_enabled',
  'background_gc_target_interval',
  'raft.wal_max_size_bytes',
];

/** Settings of a cluster: a queue keeps the replicas of the brokers that were there when it was declared, without these. */
const CLUSTER_SETTINGS = ['enabled = true', 'target_group_size = 3'].map(
  (setting) => `quorum_queue.continuous_membership_reconciliation.${setting}`,
);

/**
 * Versions and settings that are those of docker-compose.yml and package.json.
 * @param {Manifest[]} manifests
 * @param {{ name: string, version: string }} project
 * @returns {string[]}
 */
export function versionProblems(manifests, { name, version }) {
  /** @type {{ image?: string, shm_size?: string }[]} */
  const services = Object.values(
    parse(withDefaults(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8')), { merge: true }).services,
  );
  const allowed = [`${name}:${version}`, ...services.flatMap(({ image }) => image ?? [])];
  return manifests.flatMap((manifest) => {
    const { kind, spec } = manifest;
    const image = podOf(manifest)?.spec.containers[0].image ?? spec?.image ?? spec?.imageName;
    if (image === undefined) return [];
    const [repository, tag] = image.replace(/^.*\//, '').split(':');
    // CloudNativePG has images of its own, with the version first.
    const known =
      kind === 'Cluster'
        ? allowed.some((one) => one === `postgres:${tag.replace('-standard', '')}`)
        : allowed.includes(`${repository}:${tag}`);
    const problems = known ? [] : [`image ${image} is not one of ${[...new Set(allowed)].join(', ')}`];
    if (kind === 'StatefulSet' && repository === 'postgres') {
      const wanted = services.find(({ shm_size }) => shm_size)?.shm_size;
      if (sharedMemoryOf(spec.template.spec) !== wanted?.replace('m', 'Mi')) problems.push(`/dev/shm must have ${wanted}`);
    }
    if (kind === 'RabbitmqCluster') problems.push(...brokerProblems(spec.rabbitmq));
    return problems.map((problem) => `${nameOf(manifest)}: ${problem}`);
  });
}

/** @param {any} spec of a pod @returns {string | undefined} the size of /dev/shm, when it is not what the engine gives */
function sharedMemoryOf({ volumes, containers: [{ volumeMounts }] }) {
  const mount = volumeMounts.find((/** @type {{ mountPath: string }} */ { mountPath }) => mountPath === '/dev/shm');
  return volumes.find((/** @type {{ name: string }} */ { name }) => name === mount?.name)?.emptyDir?.sizeLimit;
}

/** @param {{ additionalConfig: string, advancedConfig: string }} given */
function brokerProblems({ additionalConfig, advancedConfig }) {
  /** @param {string} file */
  const read = (file) => readFileSync(join(ROOT, 'deploy/compose', file), 'utf8').split('\n');
  const wanted = read('rabbitmq.conf').filter((line) => BROKER_SETTINGS.includes(line.split(' ')[0]));
  const problems = [...wanted, ...CLUSTER_SETTINGS].filter((line) => !additionalConfig.includes(line));
  return [...problems, ...read('advanced.config').filter((line) => line.startsWith('[') && !advancedConfig.includes(line))].map(
    (line) => `its configuration lacks ${line}`,
  );
}
