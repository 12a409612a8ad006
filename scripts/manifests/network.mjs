import { nameOf } from './overlays.mjs';

/** @typedef {import('./overlays.mjs').Manifest} Manifest */
/** @typedef {Record<string, string>} Labels */

/**
 * Ports at which the servers of an operator reach each other. At 35672 rabbitmqctl takes what the other brokers list.
 * @type {Record<string, number[]>}
 */
const PEER_PORTS = { RabbitmqCluster: [4369, 25672, 35672], Cluster: [5432, 8000] };

/**
 * @param {Manifest[]} manifests
 * @param {import('./cluster.mjs').Contents} contents
 * @returns {string[]} a problem for each port at which the NetworkPolicies keep servers of an operator apart
 */
export const peerProblems = (manifests, { pods, policies }) =>
  manifests.flatMap((manifest) => {
    const owner = nameOf(manifest);
    const labels = pods.find((pod) => pod.owner === owner)?.labels ?? {};
    return (PEER_PORTS[manifest.kind] ?? [])
      .filter((port) => !mayReach(policies, labels, labels, port))
      .map((port) => `${owner}: the NetworkPolicies keep its servers apart at port ${port}`);
  });

/**
 * Whether a pod may connect to another one of the namespace, when a policy denies everything that no other one allows.
 * @param {Manifest[]} policies
 * @param {Labels} from
 * @param {Labels} to
 * @param {number} port
 */
export function mayReach(policies, from, to, port) {
  /** @param {'egress' | 'ingress'} way @param {Labels} own @param {Labels} other */
  const isAllowed = (way, own, other) =>
    policies
      .filter(({ spec }) => selects(spec.podSelector, own))
      .flatMap(({ spec }) => spec[way] ?? [])
      .some(
        ({ to: targets, from: sources, ports }) =>
          (targets ?? sources ?? []).some((/** @type {any} */ peer) => peer.podSelector && selects(peer.podSelector, other)) &&
          ports.some((/** @type {any} */ one) => one.port <= port && port <= (one.endPort ?? one.port)),
      );
  return isAllowed('egress', from, to) && isAllowed('ingress', to, from);
}

/** @param {{ matchLabels?: Labels }} selector @param {Labels} labels */
const selects = ({ matchLabels = {} }, labels) => Object.entries(matchLabels).every(([key, value]) => labels[key] === value);
