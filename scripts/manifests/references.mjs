import { addressProblem, podsOf } from './cluster.mjs';
import { nameOf, podOf } from './overlays.mjs';

/** @typedef {import('./overlays.mjs').Manifest} Manifest */
/** @typedef {import('./cluster.mjs').Contents} Contents */

/** Services of other installations in the cluster, which docs/kubernetes.md asks for. */
const OTHERS = ['prometheus-operated.monitoring.svc:9090'];

/**
 * Names that only the cluster would miss.
 * @param {Manifest[]} manifests
 * @param {Contents} contents
 * @returns {string[]}
 */
export function referenceProblems(manifests, contents) {
  const exists = new Set(manifests.map(nameOf));
  return manifests.flatMap((manifest) => {
    const found = [
      ...selectorProblems(manifest, contents),
      ...targetProblems(manifest, exists),
      ...secretProblems(manifest, contents.secrets),
      ...labelProblems(manifest, manifests),
      ...addressProblems(manifest, contents),
      ...(podOf(manifest) ? accountProblems(podOf(manifest)?.spec, exists) : []),
    ];
    const { kind, metadata } = manifest;
    if (kind !== 'Namespace' && metadata.namespace !== contents.namespace)
      found.push(`is not in namespace ${contents.namespace}`);
    return found.map((problem) => `${nameOf(manifest)}: ${problem}`);
  });
}

/** @param {Manifest} manifest @param {Contents} contents */
function selectorProblems({ kind, spec }, contents) {
  if (kind === 'Service') return portProblems(spec.selector, spec.ports, 'targetPort', contents);
  if (kind === 'PodMonitor') return portProblems(spec.selector.matchLabels, spec.podMetricsEndpoints, 'port', contents);
  if (kind === 'PodDisruptionBudget') return portProblems(spec.selector.matchLabels, [], 'port', contents);
  if (kind !== 'NetworkPolicy') return [];
  const own = spec.podSelector.matchLabels ?? {};
  const incoming = (spec.ingress ?? []).flatMap((/** @type {any} */ rule) => [
    ...portProblems(own, rule.ports, 'port', contents),
    ...peersOf(rule.from).flatMap((labels) => portProblems(labels, [], 'port', contents)),
  ]);
  const outgoing = (spec.egress ?? []).flatMap((/** @type {any} */ rule) =>
    peersOf(rule.to).flatMap((labels) => portProblems(labels, rule.ports, 'port', contents)),
  );
  return [...incoming, ...outgoing];
}

/** @param {{ podSelector?: { matchLabels: Record<string, string> } }[]} [peers] @returns {Record<string, string>[]} pods of the namespace */
const peersOf = (peers = []) => peers.flatMap(({ podSelector }) => (podSelector ? [podSelector.matchLabels] : []));

/**
 * @param {Record<string, string>} selector
 * @param {Record<string, string | number>[]} ports
 * @param {string} field of a port
 * @param {Contents} contents
 */
function portProblems(selector, ports, field, contents) {
  const pods = podsOf(selector, contents);
  if (pods.length === 0) return [`no pod has the labels ${JSON.stringify(selector)}`];
  return ports
    .map((port) => port[field])
    .filter((port) => !pods.some((pod) => pod.ports.includes(port)))
    .map((port) => `no pod with the labels ${JSON.stringify(selector)} has port ${port}`);
}

/** @param {Manifest} manifest @param {Set<string>} exists */
function targetProblems({ kind, spec }, exists) {
  /** @type {string[]} */
  const wanted = [];
  if (spec?.scaleTargetRef) wanted.push(`${spec.scaleTargetRef.kind ?? 'Deployment'} ${spec.scaleTargetRef.name}`);
  if (spec?.rabbitmqClusterReference) wanted.push(`RabbitmqCluster ${spec.rabbitmqClusterReference.name}`);
  if (spec?.userReference) wanted.push(`User ${spec.userReference.name}`);
  if (kind === 'StatefulSet') wanted.push(`Service ${spec.serviceName}`);
  for (const { authenticationRef } of spec?.triggers ?? [])
    if (authenticationRef) wanted.push(`TriggerAuthentication ${authenticationRef.name}`);
  return wanted.filter((name) => !exists.has(name)).map((name) => `names ${name}, which does not exist`);
}

/** @param {any} spec of a pod @param {Set<string>} exists */
function accountProblems(spec, exists) {
  const maps = (spec.volumes ?? []).flatMap((/** @type {any} */ { configMap }) =>
    configMap ? [`ConfigMap ${configMap.name}`] : [],
  );
  return [`ServiceAccount ${spec.serviceAccountName}`, ...maps]
    .filter((name) => !exists.has(name))
    .map((name) => `names ${name}, which does not exist`);
}

/** @param {Manifest} manifest @param {Contents['secrets']} secrets */
function secretProblems(manifest, secrets) {
  const { kind, spec } = manifest;
  /** @type {[string, string][]} Secret and key */
  const wanted = [];
  const pod = podOf(manifest)?.spec;
  for (const { secret } of pod?.volumes ?? []) for (const { key } of secret?.items ?? []) wanted.push([secret.secretName, key]);
  for (const { valueFrom } of pod?.containers[0].env ?? [])
    if (valueFrom) wanted.push([valueFrom.secretKeyRef.name, valueFrom.secretKeyRef.key]);
  for (const { name, key } of spec?.secretTargetRef ?? []) wanted.push([name, key]);
  const imported = spec?.importCredentialsSecret ?? [];
  for (const key of ['username', 'password']) {
    if (kind === 'User') wanted.push([imported.name, key]);
    for (const { passwordSecret } of spec?.managed?.roles ?? []) wanted.push([passwordSecret.name, key]);
  }
  return wanted
    .filter(([name, key]) => secrets.get(name)?.[key] === undefined)
    .map(([name, key]) => `Secret ${name} with key ${key} does not exist`);
}

/**
 * Labels without which an operator refuses a Secret, or notices no new password in it.
 * @param {Manifest} manifest @param {Manifest[]} manifests
 */
function labelProblems({ kind, spec }, manifests) {
  const { importCredentialsSecret, managed } = spec ?? {};
  /** @type {[label: string, references: { name: string }[]]} */
  const [label, references] =
    kind === 'User'
      ? ['rabbitmq.com/topology-operator', importCredentialsSecret ? [importCredentialsSecret] : []]
      : ['cnpg.io/reload', (managed?.roles ?? []).flatMap((/** @type {any} */ { passwordSecret }) => passwordSecret ?? [])];
  const names = references.map(({ name }) => name);
  return manifests
    .filter(({ kind, metadata }) => kind === 'Secret' && names.includes(metadata.name) && metadata.labels?.[label] !== 'true')
    .map(({ metadata }) => `Secret ${metadata.name} has no label ${label}`);
}

/** With one host a process knows no other broker. @param {string} url @param {Contents} contents */
function brokerProblems(url, { brokers }) {
  const missing = [...brokers.keys()].filter((broker) => !url.includes(`${broker}:`));
  return url.startsWith('amqp') && missing.length > 0 ? [`its URL lacks ${missing.join(', ')}`] : [];
}

/** @param {Manifest} manifest @param {Contents} contents */
function addressProblems({ kind, metadata, spec }, contents) {
  const found = kind === 'Secret' ? Object.values(contents.secrets.get(metadata.name) ?? {}) : [];
  const external = (spec?.triggers ?? []).flatMap((/** @type {any} */ { metadata: { serverAddress } }) => serverAddress ?? []);
  return [
    ...found
      .filter((value) => value.includes('://'))
      .flatMap((value) => [addressProblem(value, contents) ?? [], brokerProblems(value, contents)].flat()),
    ...external
      .filter((/** @type {string} */ url) => !OTHERS.includes(new URL(url).host))
      .map((/** @type {string} */ url) => `no Service is at ${url}`),
  ];
}
