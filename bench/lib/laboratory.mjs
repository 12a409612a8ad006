import { randomBytes } from 'node:crypto';
import { totalmem } from 'node:os';
import pg from 'pg';
import { startPostgres } from '../../scripts/servers/postgres/postgres.mjs';
import { startRabbit } from '../../scripts/servers/rabbitmq/rabbitmq.mjs';
import { report } from '../../scripts/checkout/progress.mjs';
import { temporaryDirectory } from '../../scripts/processes/temporary-directory.mjs';
import { Direct, Plain } from './baselines.mjs';
import { Ours } from './ours.mjs';
import { purge } from './queues.mjs';

/** As its documentation advises for a server of some size: with 128 MB, the default, each large table is written out while it is filled. */
const POSTGRES = [`shared_buffers=${Math.floor(totalmem() / 4 / 2 ** 20)}MB`, 'max_wal_size=4GB'];

const SYSTEMS = { ours: Ours, plain: Plain, direct: Direct };

/** @typedef {keyof typeof SYSTEMS} SystemName */

/** A RabbitMQ and a PostgreSQL, the latter with fsync, and the systems that run on them: one of each name at a time. */
export class Laboratory {
  /** @type {ReturnType<typeof temporaryDirectory>[]} */
  #directories = [];
  #leaving = new AbortController();
  /** @type {Promise<{ server: { kill(): Promise<unknown>, dismissReaper(): unknown } }>[]} */
  #servers = [];
  /** @type {Map<SystemName, import('./system.mjs').System>} */
  #systems = new Map();
  /** @type {Awaited<ReturnType<typeof startRabbit>> | undefined} */
  #rabbit;
  /** @type {Awaited<ReturnType<typeof startPostgres>> | undefined} */
  #postgres;
  /** @type {pg.Client | undefined} */
  #admin;
  logs = '';
  #databases = 0;

  /** @param {import('./modes.mjs').Mode} mode */
  constructor({ warmUpSeconds }) {
    this.warmUpSeconds = warmUpSeconds;
  }

  async open() {
    this.logs = this.#directory('logs');
    const password = randomBytes(16).toString('hex');
    [this.#rabbit, this.#postgres] = await Promise.all([
      // Without the management plugin: its statistics would be part of what is measured.
      this.#start(startRabbit, 'rabbitmq', { password, disposable: true, onProgress: report }),
      this.#start(startPostgres, 'postgres', { fsync: true, settings: POSTGRES }),
    ]);
    this.#admin = new pg.Client({ connectionString: this.postgres.url });
    this.admin.on('error', () => {}); // it ends with its server
    await this.admin.connect();
  }

  /**
   * A system with the usual settings. Once started it stays: what is idle costs next to nothing, and a start costs seconds.
   * @template {SystemName} N
   * @param {N} name
   * @returns {Promise<InstanceType<(typeof SYSTEMS)[N]>>}
   */
  async system(name) {
    const running = /** @type {InstanceType<(typeof SYSTEMS)[N]> | undefined} */ (this.#systems.get(name));
    return running ?? (await this.freshSystem(name));
  }

  /**
   * One with an empty database, in place of the one that runs. `options`: see the system's class.
   * @template {SystemName} N
   * @param {N} name
   * @param {Partial<import('./system.mjs').Place>} [options]
   * @returns {Promise<InstanceType<(typeof SYSTEMS)[N]>>}
   */
  async freshSystem(name, options = {}) {
    await this.stopSystem(name);
    const database = `${name}${++this.#databases}`;
    await this.admin.query(`CREATE DATABASE ${database}`);
    const databaseUrl = Object.assign(new URL(this.postgres.url), { pathname: `/${database}` }).href;
    const place = { database, databaseUrl, amqpUrl: this.rabbit.url, logs: this.logs, ...options };
    const system = /** @type {InstanceType<(typeof SYSTEMS)[N]>} */ (await new SYSTEMS[name](place).start());
    this.#systems.set(name, system);
    return system;
  }

  /** @param {SystemName} name */
  async stopSystem(name) {
    const system = this.#systems.get(name);
    if (!system) return;
    this.#systems.delete(name);
    await system.settle();
    await system.stop();
    await this.admin.query(`DROP DATABASE ${system.place.database} WITH (FORCE)`);
  }

  /** After a row that failed: nobody knows in what state it has left them. */
  async discardSystems() {
    for (const [name, system] of this.#systems) {
      await system.stop('SIGKILL');
      await this.admin.query(`DROP DATABASE ${system.place.database} WITH (FORCE)`);
      if (name === 'ours') await purge(this.rabbit.url);
    }
    this.#systems.clear();
  }

  get rabbit() {
    return opened(this.#rabbit);
  }

  get postgres() {
    return opened(this.#postgres);
  }

  get admin() {
    return opened(this.#admin);
  }

  /** Processes that all systems use. */
  get pids() {
    return { postgres: this.postgres.server.pid, rabbitmq: this.rabbit.server.pid };
  }

  /** Ends everything at once and deletes all data. */
  async close() {
    this.#leaving.abort();
    await Promise.allSettled([...this.#systems.values()].map((system) => system.stop('SIGKILL')));
    await this.#admin?.end().catch(() => {});
    for (const started of await Promise.allSettled(this.#servers)) {
      if (started.status === 'rejected') continue;
      await started.value.server.kill();
      await started.value.server.dismissReaper();
    }
    for (const directory of this.#directories) directory.remove();
  }

  /**
   * @template {object} O
   * @template {{ server: { kill(): Promise<unknown>, dismissReaper(): unknown } }} R
   * @param {(options: O & { directory: string, abort: AbortSignal }) => Promise<R>} start
   * @param {string} name
   * @param {O} options
   */
  #start(start, name, options) {
    const started = start({ directory: this.#directory(name), abort: this.#leaving.signal, ...options });
    this.#servers.push(started);
    return started;
  }

  /** @param {string} name */
  #directory(name) {
    const directory = temporaryDirectory(`bench-${name}`);
    this.#directories.push(directory);
    return directory.path;
  }
}

/** @template T @param {T | undefined} part @returns {T} */
function opened(part) {
  if (part === undefined) throw new Error('the laboratory is not open');
  return part;
}
