import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import pg from 'pg';
import { startPostgres } from '../../scripts/infra/postgres.mjs';
import { startRabbit } from '../../scripts/infra/rabbitmq.mjs';
import { report } from '../../scripts/lib/progress.mjs';
import { temporaryDirectory } from '../../scripts/lib/temporary-directory.mjs';
import { SYSTEMS } from './systems.mjs';

/** A RabbitMQ and a PostgreSQL, the latter with fsync, and the systems that run on them. */
export class Laboratory {
  #directories = [];
  #leaving = new AbortController();
  #starting = [];
  #systems = new Map();
  #databases = 0;

  async open() {
    // Without the management plugin: its statistics would be part of what is measured.
    const password = randomBytes(16).toString('hex');
    [this.rabbit, this.postgres] = await Promise.all([
      this.#start(startRabbit, 'rabbitmq', { password, disposable: true, onProgress: report }),
      this.#start(startPostgres, 'postgres', { fsync: true }),
    ]);
    this.logs = this.#directory('logs');
    this.admin = new pg.Client({ connectionString: this.postgres.url });
    this.admin.on('error', () => {}); // it ends with its server
    await this.admin.connect();
  }

  /**
   * A system that runs, started when it does not yet. Those that share the servers wait while another is measured.
   * @param {'ours' | 'plain' | 'direct'} name
   */
  async system(name) {
    if (!this.#systems.has(name)) this.#systems.set(name, await this.#startSystem(name));
    return this.#systems.get(name);
  }

  /** One with a database and settings of its own, in place of the one that runs. */
  async freshSystem(name, options) {
    await this.stopSystem(name);
    const system = await this.#startSystem(name, options);
    this.#systems.set(name, system);
    return system;
  }

  async stopSystem(name) {
    const system = this.#systems.get(name);
    this.#systems.delete(name);
    if (!system) return;
    await system.stop();
    await this.admin.query(`DROP DATABASE ${system.database} WITH (FORCE)`);
  }

  async #startSystem(name, options) {
    const database = `${name}${++this.#databases}`;
    await this.admin.query(`CREATE DATABASE ${database}`);
    const url = new URL(this.postgres.url);
    url.pathname = `/${database}`;
    return SYSTEMS[name]({ database, databaseUrl: url.href, amqpUrl: this.rabbit.url, logs: this.logs, ...options });
  }

  /** Processes that all systems use. */
  get pids() {
    return { postgres: this.postgres.server.pid, rabbitmq: this.rabbit.server.pid };
  }

  async close() {
    this.#leaving.abort();
    await Promise.allSettled([...this.#systems.values()].map((system) => system.stop('SIGKILL')));
    await this.admin?.end().catch(() => {});
    for (const { value } of await Promise.allSettled(this.#starting)) {
      await value?.server.kill();
      await value?.server.dismissReaper();
    }
    for (const directory of this.#directories) directory.remove();
  }

  #start(start, name, options) {
    const started = start({ directory: this.#directory(name), abort: this.#leaving.signal, ...options });
    this.#starting.push(started);
    return started;
  }

  #directory(name) {
    const directory = temporaryDirectory(`bench-${name}`);
    this.#directories.push(directory);
    return directory.path;
  }

  logFile(name) {
    return join(this.logs, `${name}.log`);
  }
}
