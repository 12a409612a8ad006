import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { watch } from 'chokidar';
import { report } from '../checkout/progress.mjs';
import { LOCAL, ROOT, SERVICES } from '../checkout/project.mjs';
import { isSetting, sourceRoots } from '../checkout/sources.mjs';
import { waitForLock } from '../processes/lock.mjs';
import { DevBuild } from './dev-build.mjs';
import { modulesOf } from './module-graph.mjs';

/** An editor writes in several steps, and a formatter after it. */
const QUIET_MS = 60;

/**
 * Sources whose change a restart alone does not bring to the database or the broker, each with the step of the setup that does.
 * @type {[RegExp, (service: string) => string][]}
 */
const NEEDS_SETUP = [
  [/^apps\/(users|notifications)\/src\/db\/migrations\//, (service) => service],
  [/^libs\/rabbitmq\/src\/topology\//, () => 'topology'],
];

/** Builds what is saved, and starts anew the services that load it. */
export class InnerLoop {
  #services;
  #build = new DevBuild();
  /** @type {Set<string>} */
  #saved = new Set();
  /** @type {NodeJS.Timeout | undefined} */
  #timer;
  #working = Promise.resolve();
  #savedAt = 0;
  /**
   * Built, and not running yet because another file did not compile: sources by output.
   * @type {Map<string, string>}
   */
  #held = new Map();

  /** @param {Record<string, import('../stack/service.mjs').Service>} services */
  constructor(services) {
    this.#services = services;
  }

  /** @returns {Promise<void>} resolves when every save from now on is noticed */
  async start() {
    const watched = [...sourceRoots(), ...readdirSync(ROOT).filter(isSetting)].map((path) => join(ROOT, path));
    const watcher = watch(watched, { ignoreInitial: true, ignored: /spec\.ts$/ });
    watcher.on('all', (_, path) => this.#notice(relative(ROOT, path)));
    watcher.on('error', (error) => report(`the sources cannot be watched: ${/** @type {Error} */ (error).message}`));
    await new Promise((resolve) => watcher.once('ready', () => resolve(undefined)));
    this.#notice(); // some files may have been saved while the system started
  }

  /** @param {string} [path] */
  #notice(path) {
    this.#savedAt ||= Date.now();
    if (path) this.#saved.add(path);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.#working = this.#working.then(() => this.#tryToBringInStep())), QUIET_MS);
  }

  async #tryToBringInStep() {
    try {
      await this.#bringInStep();
    } catch (error) {
      report(`the sources cannot be built: ${error.message}: the next save tries again`);
    }
  }

  async #bringInStep() {
    const [saved, savedAt] = [this.#saved, this.#savedAt];
    this.#saved = new Set();
    this.#savedAt = 0;
    const before = this.#loadedBy();
    const release = await waitForLock(join(LOCAL, 'prepare.lock'), (pid) =>
      report(`waiting for process ${pid}, which builds here`),
    );
    const { sources, outputs, errors, settings } = await this.#build.update(saved).finally(release);
    for (const { path, message } of errors)
      process.stdout.write(`\n${message}\n\n${path} does not compile: what runs goes on with the code before.\n`);
    for (const path of settings) report(`${path} has changed: stop, and start anew, for it to count`);
    for (const hint of setupHints(sources)) report(hint);
    for (const [index, output] of outputs.entries()) this.#held.set(output, sources[index]);
    // Half of a change would be a program that nobody wrote.
    if (errors.length > 0 || this.#held.size === 0) return;
    const held = [...this.#held];
    this.#held.clear();
    const after = this.#loadedBy();
    const affected = SERVICES.filter((name) => held.some(([output]) => before[name].has(output) || after[name].has(output)));
    const what = held.length === 1 ? held[0][1] : `${held.length} files`;
    report(`${what}: ${affected.length > 0 ? `restarting ${affected.join(', ')}` : 'no service loads it'}`);
    for (const name of affected) void this.#restart(name, savedAt);
  }

  /** @param {string} name @param {number} savedAt */
  async #restart(name, savedAt) {
    if (await this.#services[name].restart())
      report(`${name} is ready, ${((Date.now() - savedAt) / 1000).toFixed(1)} s after the save`);
  }

  /** @returns {Record<string, Set<string>>} what each service loads of dist/ */
  #loadedBy() {
    /** @param {string} output */
    const codeOf = (output) => this.#build.codeOf(output);
    return Object.fromEntries(SERVICES.map((name) => [name, modulesOf(`apps/${name}/src/main.js`, codeOf)]));
  }
}

/** @param {string[]} sources */
function setupHints(sources) {
  const steps = NEEDS_SETUP.flatMap(([pattern, stepOf]) =>
    sources.map((path) => pattern.exec(path)).flatMap((match) => (match ? [stepOf(match[1])] : [])),
  );
  return [...new Set(steps)].map((step) => `once it is complete: node --env-file=.local/stack.env scripts/setup.mjs ${step}`);
}
