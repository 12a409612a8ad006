import { mayReach } from './network.mjs';
import { nameOf, podOf } from './overlays.mjs';

/** @typedef {import('./overlays.mjs').Manifest} Manifest */

/**
 * The objects in the cluster after these are applied, including the objects that an operator makes.
 * @typedef {object} Contents
 * @property {string} namespace
 * @property {Map<string, number[]>} services their ports by name
 * @property {Map<string, number[]>} brokers their ports by the name of each in the headless Service
 * @property {Map<string, Record<string, string>>} selectors the labels of the pods behind each Service and each broker
 * @property {Map<string, Record<string, string>>} secrets their values by name
 * @property {Manifest[]} policies each NetworkPolicy
 * @property {{ owner: string, labels: Record<string, string>, ports: (string | number)[] }[]} pods
 */

/**
 * @param {Manifest[]} manifests
 * @returns {Contents}
 */
export function contentsOf(manifests) {
  const namespace = manifests.find(({ kind }) => kind === 'Namespace')?.metadata.name ?? '';
  /** @type {Contents} */
  const contents = {
    namespace,
    services: new Map(),
    brokers: new Map(),
    selectors: new Map(),
    secrets: new Map(),
    policies: manifests.filter(({ kind }) => kind === 'NetworkPolicy'),
    pods: [],
  };
  for (const manifest of manifests) {
    const { kind, metadata, spec } = manifest;
    const { name } = metadata;
    if (kind === 'Service') {
      const ports = spec.ports.map((/** @type {{ port: number }} */ { port }) => port);
      contents.services.set(name, ports);
      contents.selectors.set(name, spec.selector);
    }
    if (kind === 'Secret') contents.secrets.set(name, valuesOf(manifest));
    const pod = podOf(manifest);
    if (pod) contents.pods.push({ owner: nameOf(manifest), labels: pod.metadata.labels, ports: portsOf(pod.spec) });
    if (kind === 'RabbitmqCluster') addBrokers(contents, name, spec.replicas ?? 1);
    if (kind === 'Cluster') addDatabases(contents, name, spec.bootstrap.initdb);
  }
  return contents;
}

/** @param {Manifest} secret */
function valuesOf({ data = {}, stringData = {} }) {
  const decoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]);
  return { ...Object.fromEntries(decoded), ...stringData };
}

/** @param {any} spec of a pod */
const portsOf = ({ containers }) =>
  containers[0].ports?.flatMap((/** @type {{ name: string, containerPort: number }} */ port) => [
    port.name,
    port.containerPort,
  ]) ?? [];

/**
 * The objects that the RabbitMQ Cluster Operator makes.
 * @param {Contents} contents @param {string} name @param {number} replicas
 */
function addBrokers({ namespace, services, brokers, selectors, secrets, pods }, name, replicas) {
  services.set(name, [5672, 15672, 15692]);
  services.set(`${name}-nodes`, [4369, 25672]);
  for (let number = 0; number < replicas; number++) brokers.set(`${name}-server-${number}.${name}-nodes`, [5672, 15672]);
  const [username, password, host, port] = ['default_user', 'secret', `${name}.${namespace}.svc`, '5672'];
  const connection_string = `amqp://${username}:${password}@${host}:${port}/`;
  secrets.set(`${name}-default-user`, { username, password, host, port, connection_string });
  const labels = { 'app.kubernetes.io/name': name, 'app.kubernetes.io/component': 'rabbitmq' };
  for (const one of [name, ...brokers.keys()]) selectors.set(one, labels);
  pods.push({ owner: `RabbitmqCluster ${name}`, labels, ports: [4369, 5672, 15672, 15692, 25672, 35672] });
}

/**
 * The objects that CloudNativePG makes.
 * @param {Contents} contents @param {string} name @param {{ database: string, owner: string }} initdb
 */
function addDatabases({ namespace, services, selectors, secrets, pods }, name, { database, owner }) {
  const labels = { 'cnpg.io/cluster': name };
  for (const service of ['rw', 'ro', 'r'].map((role) => `${name}-${role}`)) {
    services.set(service, [5432]);
    selectors.set(service, labels);
  }
  secrets.set(`${name}-app`, { uri: `postgresql://${owner}:secret@${name}-rw.${namespace}:5432/${database}` });
  secrets.set(`${name}-ca`, { 'ca.crt': 'certificate' });
  pods.push({ owner: `Cluster ${name}`, labels, ports: [5432, 8000, 9187] });
}

/**
 * @param {Record<string, string>} selector
 * @param {Contents} contents
 */
export const podsOf = (selector, { pods }) =>
  pods.filter(({ labels }) => Object.entries(selector).every(([key, value]) => labels[key] === value));

/**
 * Why an address in a URL leads nowhere; undefined when a Service or a broker has each of them.
 * @param {string} text a URL, with one or several hosts
 * @param {Contents} contents
 * @param {Record<string, string>} [from] labels of the pod with the URL: whether it may connect, too
 */
export function addressProblem(text, contents, from) {
  const [, start, hosts, rest] = /^\w+(:\/\/(?:[^/]*@)?)([^/]*)(.*)$/.exec(text) ?? ['', '://', text, ''];
  // Only for protocols of its own a URL keeps a port that is the default.
  const problems = hosts.split(',').map((host) => hostProblem(new URL(`service${start}${host}${rest}`), contents, from));
  return problems.find(Boolean);
}

/** @param {URL} url @param {Contents} contents @param {Record<string, string>} [from] */
function hostProblem({ hostname, port }, { services, brokers, selectors, policies, namespace }, from) {
  const [name, ...rest] = hostname.split('.');
  const inside = ['', namespace, `${namespace}.svc`, `${namespace}.svc.cluster.local`].includes(rest.join('.'));
  const ports = brokers.get(hostname) ?? (inside ? services.get(name) : undefined);
  if (!ports) return `no Service is called ${hostname}`;
  if (!ports.includes(Number(port))) return `Service ${name} has no port ${port}`;
  const to = selectors.get(brokers.has(hostname) ? hostname : name) ?? {};
  if (from && !mayReach(policies, from, to, Number(port))) return `the NetworkPolicies keep it from ${hostname}:${port}`;
}
