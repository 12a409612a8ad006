import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { IMAGE, RUN, docker } from './docker';

const RENDERING = 'deploy/kubernetes/rendered/try-out.yaml';
const OWN_IMAGE = /^collaboration-backend:/;
/** The default of Kubernetes. */
const GRACE_SECONDS = 30;

interface Probe {
  httpGet: { path: string; port: string };
  timeoutSeconds: number;
}

interface PodSpec {
  containers: {
    command: string[];
    image: string;
    env?: { name: string; value?: string }[];
    ports?: { name: string; containerPort: number }[];
    resources: { limits: { memory: string } };
    securityContext: { readOnlyRootFilesystem: boolean; allowPrivilegeEscalation: boolean; capabilities: { drop: string[] } };
    volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
    livenessProbe?: Probe;
    readinessProbe?: Probe;
  }[];
  securityContext: { runAsUser: number; runAsGroup: number };
  shareProcessNamespace?: boolean;
  terminationGracePeriodSeconds?: number;
  volumes?: { name: string; secret?: { secretName: string; items: { key: string; path: string }[] } }[];
}

interface Manifest {
  kind: string;
  metadata: { name: string };
  data?: Record<string, string>;
  spec?: {
    replicas?: number;
    selector?: Record<string, string>;
    template?: { metadata: { labels: Record<string, string> }; spec: PodSpec };
  };
}

export interface Pod {
  kind: string;
  name: string;
  spec: PodSpec;
  graceSeconds: number;
  /** Names of the Services that lead to it. */
  services: string[];
}

const manifests = parseAllDocuments(readFileSync(RENDERING, 'utf8')).map((document) => document.toJS() as Manifest);

/** The pods of the rendered overlay that run the image of this project. The one for tools does not run by itself. */
export function renderedPods(): Pod[] {
  return manifests.flatMap(({ kind, metadata: { name }, spec: { replicas, template } = {} }) => {
    if (replicas === 0 || !template?.spec.containers.some(({ image }) => OWN_IMAGE.test(image))) return [];
    const { labels } = template.metadata;
    const services = manifests.filter(
      ({ kind: one, spec }) =>
        one === 'Service' && Object.entries(spec?.selector ?? {}).every(([label, value]) => labels[label] === value),
    );
    const graceSeconds = template.spec.terminationGracePeriodSeconds ?? GRACE_SECONDS;
    return [{ kind, name, spec: template.spec, graceSeconds, services: services.map(({ metadata }) => metadata.name) }];
  });
}

/** Creates the container of a pod as a kubelet would, as far as the engine has the same words, and does not start it. */
export async function createContainer({ name, spec, services }: Pod, networks: string[], directory: string): Promise<string> {
  const [container, ...others] = spec.containers;
  if (others.length > 0) throw new Error(`${name} has more than one container, which this test does not know.`);
  const { securityContext, resources, ports = [], env = [] } = container;
  const { readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities } = securityContext;
  const [network, ...more] = networks;
  const aliases = services.flatMap((service) => ['--network-alias', service]);
  const id = await docker(
    'create',
    ...['--name', `${RUN}-${name}-${String(Math.random()).slice(2, 8)}`],
    ...['--user', `${spec.securityContext.runAsUser}:${spec.securityContext.runAsGroup}`],
    ...['--memory', resources.limits.memory.replace(/i$/, '')],
    ...capabilities.drop.map((capability) => `--cap-drop=${capability}`),
    ...(readOnlyRootFilesystem ? ['--read-only'] : []),
    ...(allowPrivilegeEscalation ? [] : ['--security-opt=no-new-privileges']),
    // In a pod with one process namespace, process 1 is that of the sandbox.
    ...(spec.shareProcessNamespace ? ['--init'] : []),
    ...['--network', network, ...aliases],
    ...ports.flatMap(({ containerPort }) => ['--publish', `127.0.0.1::${containerPort}`]),
    ...env.flatMap(({ name: variable, value }) => ['--env', `${variable}=${value}`]),
    ...mounts(spec, directory),
    IMAGE,
    ...container.command,
  );
  for (const one of more) await docker('network', 'connect', ...services.flatMap((service) => ['--alias', service]), one, id);
  return id;
}

/** The request of a probe, and its time limit. */
export function target(
  { spec }: Pod,
  kind: 'livenessProbe' | 'readinessProbe',
): { port: number; path: string; timeoutMs: number } {
  const [container] = spec.containers;
  const { httpGet, timeoutSeconds = 1 } = container[kind] ?? {};
  const port = container.ports?.find(({ name }) => name === httpGet?.port)?.containerPort;
  if (!httpGet || !port) throw new Error(`The ${kind} has no port of its container.`);
  return { port, path: httpGet.path, timeoutMs: timeoutSeconds * 1000 };
}

/** Secrets as files. A kubelet gives them to the group of the pod, which needs root: here everybody may read them. */
function mounts({ volumes = [], containers: [{ volumeMounts = [] }] }: PodSpec, directory: string): string[] {
  return volumeMounts.flatMap(({ name, mountPath }) => {
    const { secret } = volumes.find((volume) => volume.name === name) ?? {};
    const data = manifests.find(({ kind, metadata }) => kind === 'Secret' && metadata.name === secret?.secretName)?.data;
    if (!secret || !data) throw new Error(`Volume ${name} is no Secret, which this test does not know.`);
    const folder = join(directory, secret.secretName);
    mkdirSync(folder, { recursive: true });
    for (const { key, path } of secret.items) writeFileSync(join(folder, path), Buffer.from(data[key], 'base64'));
    return ['--volume', `${folder}:${mountPath}:ro`];
  });
}
