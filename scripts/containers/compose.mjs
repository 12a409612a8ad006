import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DCLinter } from 'dclint';
import { parse } from 'yaml';
import { READ_BY_OPENTELEMETRY, configurations } from '../docs/configuration.mjs';
import { APPS, NODE_FLAGS, ROOT } from '../checkout/project.mjs';
import { imageCommand, imageEnvironment } from './dockerfile.mjs';

/**
 * @typedef {object} ComposeService
 * @property {string} [image]
 * @property {string} [restart]
 * @property {{ disable?: boolean }} [healthcheck]
 * @property {string} [container_name]
 * @property {string[]} [ports]
 * @property {{ options?: Record<string, string> }} [logging]
 * @property {object} [depends_on]
 * @property {string[]} [networks]
 * @property {string[]} [volumes]
 * @property {string[]} [command]
 * @property {Record<string, string>} [environment]
 * @property {string[]} [profiles]
 */

/** @typedef {{ services: Record<string, ComposeService>, networks: object, volumes: object }} ComposeDocument */

// Off: the order of the alphabet. The files are in the order in which things start and are read.
const OFF = ['service-dependencies', 'services', 'service-ports'].map((what) => [`${what}-alphabetical-order`, 0]);
const RULES = { ...Object.fromEntries(OFF), 'service-keys-order': 0, 'top-level-properties-order': 0 };

/** @param {string} composeFile @param {string} dockerfile */
export async function composeProblems(composeFile, dockerfile) {
  /** @type {{ messages: { line: number, message: string }[] }[]} */
  const results = new DCLinter({ rules: RULES }).lintFiles([join(ROOT, 'docker-compose.yml')], false);
  const problems = results.flatMap(({ messages }) => messages.map(({ line, message }) => `line ${line}: ${message}`));

  /** @type {ComposeDocument} */
  const document = parse(withDefaults(composeFile), { merge: true });
  const { services } = document;
  const ownImage = services.setup?.image;
  const image = { environment: imageEnvironment(dockerfile), command: imageCommand(dockerfile) };
  for (const [name, service] of Object.entries(services)) {
    const found = [...operationProblems(service), ...referenceProblems(service, document)];
    if (service.image === ownImage) found.push(...ownProblems(name, service, image));
    problems.push(...found.map((problem) => `service ${name}: ${problem}`));
  }
  return problems;
}

/**
 * The compose file as a fresh clone has it: every variable at its default.
 * @param {string} text
 */
export const withDefaults = (text) => text.replace(/\$\{\w+:-([^}]*)\}/g, '$1');

/** @param {ComposeService} service */
function operationProblems(service) {
  const once = service.restart === 'no';
  const wanted = once ? ['mem_limit', 'healthcheck'] : ['healthcheck', 'mem_limit', 'restart', 'stop_grace_period'];
  const problems = wanted
    .filter((key) => /** @type {Record<string, unknown>} */ (service)[key] === undefined)
    .map((key) => `${key} is missing`);
  if (!once && service.healthcheck?.disable) problems.push('the health check is switched off');
  if (!service.logging?.options?.['max-size']) problems.push('its log has no bound: logging needs the option max-size');
  if (service.container_name) problems.push('container_name does not let it have replicas');
  for (const port of service.ports ?? []) {
    if (!/^127\.0\.0\.1:\d+:\d+$/.test(port)) problems.push(`port ${port} must be published on 127.0.0.1 only`);
  }
  return problems;
}

/**
 * Names that only the engine would miss, at the start.
 * @param {ComposeService} service
 * @param {ComposeDocument} document
 */
function referenceProblems(service, document) {
  const named = {
    services: Object.keys(service.depends_on ?? {}),
    networks: service.networks ?? [],
    volumes: (service.volumes ?? []).map((volume) => volume.split(':')[0]).filter((source) => !source.startsWith('.')),
  };
  return Object.entries(named).flatMap(([kind, names]) =>
    names
      .filter((name) => !Object.hasOwn(document[/** @type {keyof ComposeDocument} */ (kind)], name))
      .map((name) => `${name} is not one of the ${kind}`),
  );
}

/**
 * Runs the process's own check of its configuration on the environment that the container would have.
 * @param {string} name
 * @param {ComposeService} options
 * @param {{ environment: Record<string, string>, command: string[] }} image
 */
function ownProblems(name, { command, environment = {}, profiles }, image) {
  const program = (command ?? image.command).find((word) => /\.m?js$/.test(word));
  const problems = existsSync(join(ROOT, program ?? '?')) ? [] : [`the command names ${program}, which does not exist`];
  const flags = (command ?? image.command).filter((word) => word.startsWith('--')).join(' ');
  if (APPS.includes(name) && flags !== NODE_FLAGS.join(' '))
    problems.push(`node's flags are ${flags}; scripts/checkout/project.mjs says ${NODE_FLAGS.join(' ')}`);

  const all = Object.entries(configurations());
  /** @param {[string, unknown]} options */
  const isOneOfItsOwn = ([process]) => (APPS.includes(name) ? process === name : process.endsWith(' migration'));
  const readable = APPS.includes(name) ? all.filter(isOneOfItsOwn) : all;
  const settings = readable.flatMap(([, one]) => Object.values(one.settings).flatMap(({ names }) => names));
  const known = new Set([...settings, ...READ_BY_OPENTELEMETRY]);
  for (const [key, value] of Object.entries(environment)) {
    if (!known.has(key)) problems.push(`it does not know the variable ${key}`);
    // Compose refuses a bare true, and a bare 010 is another number.
    if (typeof value !== 'string') problems.push(`the value of ${key} needs quotes`);
  }
  for (const [, Config] of all.filter(isOneOfItsOwn)) {
    try {
      new Config({ ...image.environment, ...environment });
    } catch (error) {
      // A variable that is empty by default is for the profile.
      const isTheirs = (/** @type {string} */ problem) => profiles && environment[problem.split(' ')[0]] === '';
      problems.push(...error.problems.filter((/** @type {string} */ problem) => !isTheirs(problem)));
    }
  }
  return problems;
}
