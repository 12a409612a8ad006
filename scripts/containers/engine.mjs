import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../checkout/machine.mjs';
import { ROOT } from '../checkout/project.mjs';
import { CommandFailure, runQuietly } from '../processes/command.mjs';
import { docker } from '../servers/rabbitmq/container.mjs';
import { baseImages } from './dockerfile.mjs';

/** The oldest one that reads `start_interval` of a health check. */
const OLDEST_ENGINE = 25;
/** The oldest one that reads `!override`. */
const OLDEST_COMPOSE = [2, 24];

/** @param {{ stderr?: string, message: string }} error */
const lastLine = (error) => (error.stderr || error.message).trim().split('\n').at(-1);

/** @throws {UserError} that names the missing or outdated program */
export async function needEngine() {
  const engine = await docker('version', '--format', '{{.Server.Version}}').catch((error) => {
    throw new UserError(
      `This needs a Docker engine of version ${OLDEST_ENGINE} or later, and none answers (${lastLine(error)}). On Debian 13 and later: apt-get install docker.io docker-cli docker-compose`,
    );
  });
  if (Number.parseInt(engine) < OLDEST_ENGINE)
    throw new UserError(`This needs a Docker engine of version ${OLDEST_ENGINE} or later, and this one is ${engine}.`);
  const compose = await docker('compose', 'version', '--short').catch(() => undefined);
  const [major, minor] = (compose ?? '0.0').replace(/^v/, '').split('.').map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_COMPOSE;
  if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor))
    throw new UserError(
      `This needs docker compose ${OLDEST_COMPOSE.join('.')} or later, and ${compose ? `this one is ${compose}` : 'there is none'}. On Debian 13 and later: apt-get install docker-compose`,
    );
}

/**
 * The images that ours is made of and runs beside, by the variable that names another one, in the environment or in .env.
 * @returns {Promise<Record<string, string>>}
 */
async function neededImages() {
  const { services } = JSON.parse(await docker('compose', '--project-directory', ROOT, 'config', '--format', 'json'));
  const [node] = baseImages(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'));
  return {
    NODE_IMAGE: services.setup.build.args?.NODE_IMAGE || node,
    RABBITMQ_IMAGE: services.rabbitmq.image,
    POSTGRES_IMAGE: services.postgres.image,
  };
}

/**
 * @param {(what: string) => void} onProgress called before something that takes long
 * @returns {Promise<Record<string, string>>} their names, by variable
 * @throws {UserError} with the variable that may name another image
 */
export async function needImages(onProgress) {
  const images = await neededImages();
  for (const [variable, image] of Object.entries(images)) {
    const isThere = await docker('image', 'inspect', image).catch(() => undefined);
    if (isThere) continue;
    onProgress(`pulling the image ${image} (once)`);
    await runQuietly('docker', ['pull', image], { name: `docker pull ${image}` }).catch((error) => {
      if (!(error instanceof CommandFailure)) throw error;
      throw new UserError(`The image ${image} cannot be pulled. ${variable} names another one, such as a copy in your registry.`);
    });
  }
  return images;
}
