import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPostgres } from './postgres/postgres.mjs';
import { startRabbit } from './rabbitmq/rabbitmq.mjs';
import { ensureDatabase } from './postgres/accounts.mjs';
import { report } from '../checkout/progress.mjs';
import { LOCAL } from '../checkout/project.mjs';
import { BROKER_ACCOUNT } from '../stack/stack-secrets.mjs';

const DATABASE = 'collaboration';

/** @typedef {Awaited<ReturnType<typeof startRabbit>>['server'] | Awaited<ReturnType<typeof startPostgres>>['server']} Server */

/** The private RabbitMQ and PostgreSQL of this checkout. One that dies is started again with its data. */
export class OwnServers {
  #secrets;
  /** @type {Server[]} */
  #servers = [];
  /** @type {Promise<unknown>[]} */
  #starting = [];
  #leaving = new AbortController();

  /** @param {ReturnType<typeof import('../stack/stack-secrets.mjs').readStackSecrets>} secrets */
  constructor(secrets) {
    this.#secrets = secrets;
  }

  /**
   * @param {(what: string) => void} onProgress
   * @returns {Promise<Record<string, string>>} the settings that lead to it
   */
  startRabbit(onProgress) {
    return this.#track(this.#startRabbit(onProgress));
  }

  /** @returns {Promise<Record<string, string>>} the settings that lead to it */
  startPostgres() {
    return this.#track(this.#startPostgres());
  }

  /** @param {(what: string) => void} onProgress */
  async #startRabbit(onProgress) {
    const { passwords, ports } = this.#secrets;
    const rabbit = await startRabbit({
      directory: directoryOf('rabbitmq'),
      password: passwords.rabbitmq,
      management: true,
      ports: { amqp: ports.amqp, management: ports.management },
      onProgress,
      onDeath: () => this.#revive('RabbitMQ', rabbit.server),
      abort: this.#leaving.signal,
    });
    ports.amqp = rabbit.port;
    ports.management = rabbit.managementPort;
    this.#servers.push(rabbit.server);
    const accounts = Object.entries(passwords).filter(([account]) => account.startsWith(BROKER_ACCOUNT));
    return {
      AMQP_URL: rabbit.url,
      RABBITMQ_MANAGEMENT_URL: `http://127.0.0.1:${rabbit.managementPort}`,
      ...Object.fromEntries(
        accounts.map(([account, password]) => {
          const name = account.slice(BROKER_ACCOUNT.length);
          return [`${name.toUpperCase()}_AMQP_URL`, `amqp://${name}:${password}@127.0.0.1:${rabbit.port}`];
        }),
      ),
    };
  }

  async #startPostgres() {
    const { passwords, ports } = this.#secrets;
    const postgres = await startPostgres({
      directory: directoryOf('postgres'),
      password: passwords.postgres,
      port: ports.postgres,
      onDeath: () => this.#revive('PostgreSQL', postgres.server),
      abort: this.#leaving.signal,
    });
    ports.postgres = postgres.port;
    this.#servers.push(postgres.server);
    await ensureDatabase(postgres.url, DATABASE);
    /** @param {string} role */
    const url = (role) => `postgres://${role}:${passwords[role]}@127.0.0.1:${postgres.port}/${DATABASE}`;
    return {
      DATABASE_URL: url('postgres'),
      USERS_DATABASE_URL: url('users_service'),
      NOTIFICATIONS_DATABASE_URL: url('notifications_service'),
    };
  }

  /** Ends them; what they hold stays. */
  stop() {
    return this.#endAll((server) => server.stop());
  }

  /** The same at once, as a power cut would. */
  kill() {
    return this.#endAll((server) => server.kill());
  }

  /** @param {(server: Server) => Promise<unknown>} end */
  async #endAll(end) {
    this.#leaving.abort();
    await Promise.allSettled(this.#starting);
    await Promise.all(
      this.#servers.map(async (server) => {
        await end(server);
        await server.dismissReaper();
      }),
    );
  }

  /** @template T @param {Promise<T>} start */
  #track(start) {
    this.#starting.push(start);
    return start;
  }

  /** @param {string} name @param {Server} server */
  async #revive(name, server) {
    for (let delay = 500; !this.#leaving.signal.aborted; delay = Math.min(delay * 2, 10_000)) {
      report(`${name} ended unexpectedly; starting it again`);
      const failure = await server.start().catch((/** @type {Error} */ error) => error);
      if (!failure) return report(`${name} is back`);
      report(failure.message);
      await sleep(delay);
    }
  }
}

/** @param {string} name */
function directoryOf(name) {
  const directory = join(LOCAL, name);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return directory;
}
