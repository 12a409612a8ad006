import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { imageEnvironment } from '../containers/dockerfile.mjs';
import { READ_BY_OPENTELEMETRY, configurations } from '../docs/configuration.mjs';
import { APPS, NODE_FLAGS, ROOT, built } from '../checkout/project.mjs';
import { addressProblem } from './cluster.mjs';
import { nameOf, podOf } from './overlays.mjs';

/** @typedef {import('./overlays.mjs').Manifest} Manifest */
/** @typedef {import('./cluster.mjs').Contents} Contents */

/** @typedef {{ name: string, value?: string, valueFrom?: object }} Variable */

/** @param {Manifest} manifest @param {string} project */
export const isOwn = (manifest, project) =>
  podOf(manifest)?.spec.containers[0].image.replace(/^.*\//, '').startsWith(`${project}:`) ?? false;

/**
 * The problems that a process of ours would find at its start: its program, and its configuration.
 * @param {Manifest[]} manifests
 * @param {Contents} contents
 * @param {string} project
 * @returns {string[]}
 */
export function processProblems(manifests, contents, project) {
  return manifests
    .filter((manifest) => isOwn(manifest, project))
    .flatMap((manifest) => {
      const { metadata, spec } = /** @type {NonNullable<ReturnType<typeof podOf>>} */ (podOf(manifest));
      return [...programProblems(spec), ...environmentProblems(spec, metadata.labels, contents)].map(
        (problem) => `${nameOf(manifest)}: ${problem}`,
      );
    });
}

/** @param {string[]} command */
const programOf = (command) => command.find((word) => /\.m?js$/.test(word)) ?? '?';
/** @param {string} program */
const serviceOf = (program) => APPS.find((service) => program === `dist/${service}.js`);

/** @param {any} spec of a pod */
function programProblems({ containers: [{ command }], terminationGracePeriodSeconds = 30, containers }) {
  // A pod for kubectl exec.
  if (command[0] !== 'node') return [];
  const program = programOf(command);
  const problems = existsSync(join(ROOT, program)) ? [] : [`the command names ${program}, which does not exist`];
  if (!serviceOf(program)) return problems;
  const flags = command.filter((/** @type {string} */ word) => word.startsWith('--')).join(' ');
  if (flags !== NODE_FLAGS.join(' '))
    problems.push(`node's flags are ${flags}; scripts/checkout/project.mjs says ${NODE_FLAGS.join(' ')}`);
  const delay = containers[0].env.find((/** @type {Variable} */ { name }) => name === 'SHUTDOWN_DELAY_MS')?.value ?? 0;
  const { SHUTDOWN_LIMIT_MS } = built('libs/runtime/src/settings/common-settings.js');
  if (terminationGracePeriodSeconds * 1000 <= Number(delay) + SHUTDOWN_LIMIT_MS)
    problems.push(`terminationGracePeriodSeconds must be more than the delay and the drain (${delay} + ${SHUTDOWN_LIMIT_MS} ms)`);
  return problems;
}

/**
 * Runs the process's own check of its configuration on the environment that the container would have.
 * @param {any} spec of a pod
 * @param {Record<string, string>} labels of the pod
 * @param {Contents} contents
 */
function environmentProblems(spec, labels, contents) {
  const service = serviceOf(programOf(spec.containers[0].command));
  const all = Object.entries(configurations());
  const own = all.filter(([process]) =>
    service ? process === service : process.endsWith(' migration') || ['accounts', 'topology'].includes(process),
  );
  const settings = own.flatMap(([, one]) => Object.values(one.settings));
  const read = settings.flatMap(({ names, secret }) => names.flatMap((name) => (secret ? [name, `${name}_FILE`] : [name])));
  const names = new Set([...read, ...READ_BY_OPENTELEMETRY]);
  const problems = [];
  /** @type {Record<string, string>} */
  const environment = imageEnvironment(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'));
  for (const { name, value = '' } of spec.containers[0].env) {
    if (!names.has(name)) problems.push(`it does not know the variable ${name}`);
    const content = name.endsWith('_FILE') ? contentOf(value, spec, contents) : value;
    if (content === undefined) problems.push(`${name}: no Secret is mounted at ${value}`);
    else if (!name.endsWith('_FILE')) environment[name] = content;
    // A certificate is read from its path, which is not here.
    else if (settings.some(({ secret, names }) => secret && names.includes(name.slice(0, -5))))
      environment[name.slice(0, -5)] = content;
  }
  for (const value of Object.values(environment).filter((one) => one.includes('://'))) {
    const problem = addressProblem(value, contents, labels);
    if (problem) problems.push(problem);
  }
  for (const [, Config] of own) {
    try {
      new Config(environment);
    } catch (error) {
      problems.push(...error.problems);
    }
  }
  return problems;
}

/**
 * The content of a file in a mounted Secret.
 * @param {string} path
 * @param {any} spec of a pod
 * @param {Contents} contents
 */
function contentOf(path, { containers: [{ volumeMounts }], volumes }, { secrets }) {
  const mount = volumeMounts.find((/** @type {{ mountPath: string }} */ { mountPath }) => path.startsWith(`${mountPath}/`));
  const volume = volumes.find((/** @type {{ name: string }} */ { name }) => name === mount?.name);
  const file = path.slice(mount?.mountPath.length + 1);
  const item = volume?.secret?.items.find((/** @type {{ path: string }} */ item) => item.path === file);
  return secrets.get(volume?.secret?.secretName)?.[item?.key];
}
