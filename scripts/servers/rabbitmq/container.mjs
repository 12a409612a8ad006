import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { runQuietly } from '../../processes/command.mjs';
import { connectionFailure, freePorts } from '../../processes/free-port.mjs';
import { startReaper } from '../../processes/reaper.mjs';
import { BROKER_SETTINGS, tlsConfiguration } from './settings.mjs';

const IMAGE = 'rabbitmq:4.2-management';

/** @param {string[]} args */
export const docker = async (...args) => (await promisify(execFile)('docker', args, { timeout: 60_000 })).stdout.trim();

/**
 * Starts a RabbitMQ of our own in a container. Its data is in a volume named after the directory, or goes with it.
 * @param {import('./rabbitmq.mjs').CompleteOptions} options
 * @param {(what: string) => void} onProgress
 */
export async function startContainerRabbit(options, onProgress) {
  const { directory, management, disposable, user, password, tls, ports: preferred = {}, onDeath, abort } = options;
  // Each checkout its own; the password is part of it because RabbitMQ reads it only when its data is new.
  const name = `collaboration-rabbitmq-${createHash('sha256').update(`${directory}:${password}`).digest('hex').slice(0, 12)}`;
  const [port, managementPort] = await freePorts([preferred.amqp, preferred.management]);
  await docker('image', 'inspect', IMAGE).catch(() => {
    onProgress(`pulling the image ${IMAGE} (once)`);
    return runQuietly('docker', ['pull', IMAGE], { name: `docker pull ${IMAGE}` });
  });
  await docker('rm', '--force', '--volumes', name).catch(() => {}); // left by a crash
  const remove = 'docker rm --force --volumes "$NAME"';
  const reaper = startReaper(disposable ? remove : `docker stop -t 5 "$NAME"; ${remove}`, {
    ...dockerVariables(),
    NAME: name,
  });
  const settings = Object.entries(BROKER_SETTINGS).flatMap(([application, values]) =>
    Object.entries(values).map(([setting, value]) => `-${application} ${setting} ${value}`),
  );
  await runQuietly(
    'docker',
    [
      'create',
      ...['--name', name, '--hostname', 'rabbit'], // the host name is part of the data's path
      ...['--publish', `127.0.0.1:${port}:${tls ? 5671 : 5672}`],
      ...(management ? ['--publish', `127.0.0.1:${managementPort}:${tls ? 15671 : 15672}`] : []),
      ...(tls ? tlsVolumes(directory, tls) : []),
      ...(disposable ? [] : ['--volume', `${name}:/var/lib/rabbitmq`]),
      ...['--env', `RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=${settings.join(' ')}`],
      ...['--env', 'RABBITMQ_DEFAULT_USER', '--env', 'RABBITMQ_DEFAULT_PASS'], // by name: a value would show in the process list
      IMAGE,
    ],
    { name: 'docker create', env: { ...process.env, RABBITMQ_DEFAULT_USER: user, RABBITMQ_DEFAULT_PASS: password } },
  );
  const server = new ContainerServer(
    name,
    reaper,
    () => answers(name, port, management ? managementPort : undefined),
    onDeath,
    abort,
  );
  await server.start();
  /** @param {string} program @param {string[]} args */
  const control = (program, ...args) => docker('exec', name, program, ...args);
  return { server, port, managementPort: management ? managementPort : undefined, control };
}

/** @param {string} directory @param {string} tls */
function tlsVolumes(directory, tls) {
  const file = join(directory, 'tls.conf');
  writeFileSync(file, `${tlsConfiguration('0.0.0.0', 5671, 15671, '/tls').join('\n')}\n`);
  return ['--volume', `${tls}:/tls:ro`, '--volume', `${file}:/etc/rabbitmq/conf.d/30-tls.conf:ro`];
}

/** @param {Promise<unknown>} work */
const succeeds = (work) =>
  work.then(
    () => true,
    () => false,
  );

// Docker's proxy opens the published port before anything listens inside, so the node itself is asked.
/** @param {string} name @param {number} port @param {number | undefined} managementPort */
async function answers(name, port, managementPort) {
  const listening = docker('exec', name, 'rabbitmq-diagnostics', '--quiet', 'check_port_connectivity');
  if (!(await succeeds(listening)) || (await connectionFailure('127.0.0.1', port))) return false;
  return !managementPort || succeeds(fetch(`http://127.0.0.1:${managementPort}/`));
}

// How the client finds its engine: by context (below HOME) or by variables.
export function dockerVariables() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => name === 'HOME' || name.startsWith('DOCKER_')));
}

/** The same verbs as ServerProcess, for a container. */
class ContainerServer {
  #expected = true;
  running = false;

  /**
   * @param {string} name
   * @param {import('../../processes/reaper.mjs').Reaper} reaper
   * @param {() => Promise<boolean>} isReady
   * @param {(() => void) | undefined} onDeath
   * @param {AbortSignal | undefined} abort
   */
  constructor(name, reaper, isReady, onDeath, abort) {
    this.name = name;
    this.reaper = reaper;
    this.isReady = isReady;
    this.onDeath = onDeath;
    this.abort = abort;
  }

  get pid() {
    return undefined;
  }

  async start(timeoutMs = 90_000) {
    if (this.running) return;
    await docker('start', this.name);
    this.running = true;
    for (const since = Date.now(); !(await this.isReady()); await sleep(250)) {
      if (Date.now() - since < timeoutMs && !this.abort?.aborted) continue;
      await this.kill();
      throw new Error(`RabbitMQ was not ready after ${timeoutMs / 1000} s; see docker logs ${this.name}`);
    }
    this.#expected = false;
    const waiter = spawn('docker', ['wait', this.name], { stdio: 'ignore' });
    waiter.once('exit', () => {
      if (this.#expected) return;
      this.running = false;
      this.onDeath?.();
    });
  }

  /** @param {string[]} command */
  async #end(...command) {
    if (!this.running) return;
    this.#expected = true;
    this.running = false;
    await docker(...command, this.name).catch(() => {});
  }

  stop() {
    return this.#end('stop', '-t', '15');
  }

  kill() {
    return this.#end('kill');
  }

  pause() {
    return docker('pause', this.name);
  }

  resume() {
    return docker('unpause', this.name);
  }

  /** Takes the container away as well; a named volume stays. */
  async dismissReaper() {
    await docker('rm', '--force', '--volumes', this.name).catch(() => {});
    this.reaper.dismiss();
  }
}
