import { isOwn } from './processes.mjs';
import { nameOf, podOf } from './overlays.mjs';

/** @typedef {import('./overlays.mjs').Manifest} Manifest */

/**
 * The settings that every pod must have, for security and for operation.
 * @param {Manifest[]} manifests
 * @param {string} project
 * @returns {string[]}
 */
export function hardeningProblems(manifests, project) {
  const problems = manifests.flatMap((manifest) => {
    const spec = podOf(manifest)?.spec;
    const found = manifest.kind === 'ServiceAccount' ? tokenProblems(manifest) : [];
    if (spec) found.push(...podProblems(spec), ...(isOwn(manifest, project) ? ownProblems(manifest, manifests) : []));
    // CloudNativePG makes one for its servers.
    if (manifest.kind === 'RabbitmqCluster') found.push(...budgetProblems(manifest, manifests));
    if (manifest.kind === 'Cluster') found.push(...logProblems(manifest), ...standbyProblems(manifest));
    return found.map((problem) => `${nameOf(manifest)}: ${problem}`);
  });
  const denies = manifests.some(
    ({ kind, spec }) =>
      kind === 'NetworkPolicy' && !spec.podSelector.matchLabels && !spec.ingress && !spec.egress && spec.policyTypes.length === 2,
  );
  return denies ? problems : [...problems, 'no NetworkPolicy denies by default'];
}

/** @param {string} [size] */
const gigabytes = (size) => Number(/^(\d+)G/.exec(size ?? '')?.[1]);

/** CloudNativePG keeps the log for each standby, also for one that never comes back. @param {Manifest} manifest */
function logProblems({ spec: { walStorage, postgresql } }) {
  const { max_wal_size: between, max_slot_wal_keep_size: kept } = postgresql.parameters;
  return gigabytes(kept) + gigabytes(between) < gigabytes(walStorage?.size)
    ? []
    : ['max_slot_wal_keep_size and max_wal_size together must be less than walStorage, which a lost standby fills otherwise'];
}

/** @param {Manifest} manifest */
function standbyProblems({ spec: { postgresql } }) {
  // With ANY 1 of two standbys.
  const problems = postgresql.synchronous?.failoverQuorum
    ? []
    : ['without failoverQuorum a standby may be promoted that lacks answers 200'];
  // As docs/servers.md says.
  if (postgresql.parameters.wal_retrieve_retry_interval !== '200ms')
    problems.push('commits wait for a standby after a promotion: wal_retrieve_retry_interval must be 200ms');
  return problems;
}

/** @param {{ [field: string]: any }} holder */
const tokenProblems = ({ automountServiceAccountToken }) =>
  automountServiceAccountToken === false ? [] : ['a token of the ServiceAccount is mounted'];

/** @param {any} spec of a pod */
function podProblems(spec) {
  const { securityContext = {}, containers } = spec;
  const problems = tokenProblems(spec);
  if (securityContext.runAsNonRoot !== true || !(securityContext.runAsUser > 0)) problems.push('it may run as root');
  if (securityContext.seccompProfile?.type !== 'RuntimeDefault') problems.push('it has no seccomp profile');
  for (const { name, image, securityContext: own = {}, resources = {} } of containers) {
    if (own.allowPrivilegeEscalation !== false) problems.push(`${name} may gain privileges`);
    if (own.capabilities?.drop?.[0] !== 'ALL') problems.push(`${name} has capabilities`);
    if (!resources.requests?.cpu || !resources.requests.memory || !resources.limits?.memory)
      problems.push(`${name} needs requests of processor and memory, and a limit of memory`);
    if (!/:\d+\.\d+[\w.-]*$/.test(image)) problems.push(`image ${image}: the tag must name at least a minor version`);
  }
  return problems;
}

/** @param {Manifest} manifest @param {Manifest[]} manifests */
function ownProblems({ kind, metadata, spec }, manifests) {
  const [container] = spec.template.spec.containers;
  const problems = container.securityContext.readOnlyRootFilesystem ? [] : ['its file system can be written'];
  // One of no pods is for kubectl exec: nothing calls it.
  if (kind !== 'Deployment' || spec.replicas === 0) return problems;
  if (!container.readinessProbe || !container.livenessProbe) problems.push('it needs probes');
  // One process by design: it may be away while it is replaced.
  if (spec.strategy?.type === 'Recreate') return problems;
  const spreads = spec.template.spec.topologySpreadConstraints ?? [];
  if (!spreads.length) problems.push('its pods are not spread');
  // Pods of the earlier version count otherwise, and the new ones may all be in one zone when these have gone.
  if (!spreads.every((/** @type {{ matchLabelKeys?: string[] }} */ one) => one.matchLabelKeys?.includes('pod-template-hash')))
    problems.push('its pods are spread together with those of the earlier version: matchLabelKeys lacks pod-template-hash');
  return [...problems, ...budgetProblems({ metadata }, manifests)];
}

/** @param {Pick<Manifest, 'metadata'>} manifest @param {Manifest[]} manifests */
const budgetProblems = ({ metadata }, manifests) =>
  manifests.some((one) => one.kind === 'PodDisruptionBudget' && one.metadata.name === metadata.name)
    ? []
    : ['it needs a PodDisruptionBudget of its name'];
