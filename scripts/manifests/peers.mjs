import { nameOf } from './overlays.mjs';

/** @typedef {import('./overlays.mjs').Manifest} Manifest */
/** @typedef {Record<string, string>} Labels */

/**
 * Ports at which the servers of an operator reach each other. At 35672 rabbitmqctl takes what the other brokers list.
 * @type {Record<string, number[]>}
 */
const PORTS = { RabbitmqCluster: [4369, 25672, 35672], Cluster: [5432, 8000] };

/**
 * @param {Manifest[]} manifests
 * @param {import('./cluster.mjs').Contents} contents
 * @returns {string[]} a problem for each port at which the NetworkPolicies keep servers of an operator apart
 */
export function peerProblems(manifests, { pods }) {
  const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy');
  return manifests.flatMap((manifest) => {
    const owner = nameOf(manifest);
    const labels = pods.find((pod) => pod.owner === owner)?.labels ?? {};
    return (PORTS[manifest.kind] ?? []).flatMap((port) =>
      ['ingress', 'egress']
        .filter((way) => !policies.some((policy) => allows(policy, way, labels, port)))
        .map((way) => `${owner}: no NetworkPolicy allows ${way} between its servers at port ${port}`),
    );
  });
}

/** @param {Manifest} policy @param {string} way @param {Labels} labels of both ends @param {number} port */
function allows({ spec }, way, labels, port) {
  if (!selects(spec.podSelector, labels)) return false;
  return (spec[way] ?? []).some(
    (/** @type {any} */ { from, to, ports }) =>
      (from ?? to ?? []).some((/** @type {any} */ { podSelector }) => podSelector && selects(podSelector, labels)) &&
      ports.some((/** @type {any} */ one) => one.port <= port && port <= (one.endPort ?? one.port)),
  );
}

/** @param {{ matchLabels?: Labels }} selector @param {Labels} labels */
const selects = ({ matchLabels = {} }, labels) => Object.entries(matchLabels).every(([key, value]) => labels[key] === value);
