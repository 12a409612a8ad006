import { Registry } from 'prom-client';
import { built } from '../checkout/project.mjs';
import { nameOf } from './overlays.mjs';

/** @typedef {import('./overlays.mjs').Manifest} Manifest */

/** Connections that PostgreSQL keeps for superusers, and those for operators, backups, monitoring and set-up. */
const RESERVED_CONNECTIONS = 3 + 12;
/** A users process listens on one more connection than it has in its pool. */
const LISTENING = 1;

/**
 * The most notification writers that fit into the connections of the database. During a rollout each Deployment has one pod more.
 * @param {{ maxConnections: number, users: number, readers: number, poolSize?: number }} system replicas of users and notification readers
 * @returns {number} at least 1
 */
export function mostWriters({ maxConnections, users, readers, poolSize = 10 }) {
  const others = (users + 1) * (poolSize + LISTENING) + (readers + 1) * poolSize;
  return Math.max(1, Math.floor((maxConnections - RESERVED_CONNECTIONS - others) / poolSize) - 1);
}

/** @returns {string} the regular expression for the queues that notification writers consume */
function commandQueues() {
  /** @type {typeof import('../../libs/rabbitmq/src/topology/consumed-queues.ts')} */
  const { consumedQueues } = built('libs/rabbitmq/src/topology/consumed-queues.js');
  const names = consumedQueues('notifications', ['commands'], 1).map(({ name }) => name.replaceAll('.', '[.]'));
  return `^(${names.join('|')})$`;
}

/**
 * @param {Manifest[]} manifests
 * @param {string} namespace
 * @returns {string[]}
 */
export function scalingProblems(manifests, namespace) {
  /** @param {string} kind @param {string} name */
  const find = (kind, name) => manifests.find((one) => one.kind === kind && one.metadata.name === name);
  return manifests
    .filter(({ kind }) => kind === 'ScaledObject')
    .flatMap((scaled) => {
      const { minReplicaCount, maxReplicaCount, triggers } = scaled.spec;
      const problems = minReplicaCount >= 2 ? [] : ['two writers at least must always run, for the loss of one'];
      const most = mostWriters({
        maxConnections: Number(find('Cluster', 'postgres')?.spec.postgresql.parameters.max_connections),
        users: find('Deployment', 'users')?.spec.replicas,
        readers: find('Deployment', 'notification-readers')?.spec.replicas,
      });
      if (maxReplicaCount !== most) problems.push(`maxReplicaCount must be ${most}, for the connections of the database`);
      if (find('Deployment', 'notification-writers')?.spec.replicas !== undefined)
        problems.push('its Deployment has replicas, which an apply would set back');
      for (const { type, metadata } of triggers) {
        if (type === 'rabbitmq' && metadata.queueName !== commandQueues()) problems.push(`queueName must be ${commandQueues()}`);
        if (type === 'prometheus') problems.push(...queryProblems(metadata.query, namespace));
      }
      return problems.map((problem) => `${nameOf(scaled)}: ${problem}`);
    });
}

/** @param {string} query @param {string} namespace */
function queryProblems(query, namespace) {
  const { TransportMetrics } = built('libs/rabbitmq/src/metrics.js');
  const registry = new Registry();
  TransportMetrics.of(registry);
  const names = [...query.matchAll(/\b(\w+)_bucket\b/g)].map(([, name]) => name);
  const problems = names.filter((name) => !registry.getSingleMetric(name)).map((name) => `no process has the metric ${name}`);
  if (!query.includes(`namespace="${namespace}"`)) problems.push(`the query must be about namespace ${namespace}`);
  return problems;
}
