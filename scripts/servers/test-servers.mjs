import { randomBytes } from 'node:crypto';
import { startPostgres } from './postgres/postgres.mjs';
import { startRabbit } from './rabbitmq/rabbitmq.mjs';
import { temporaryDirectory } from '../processes/temporary-directory.mjs';

/** A RabbitMQ and a PostgreSQL for one test run, with data that nobody will miss. */
export class TestServers {
  /** @type {ReturnType<typeof temporaryDirectory>[]} */
  #directories = [];
  /** @type {Promise<{ server: { kill(): Promise<unknown>, dismissReaper(): unknown } }>[]} */
  #starting = [];
  #leaving = new AbortController();

  /**
   * @param {(what: string) => void} onProgress
   * @returns {Promise<NodeJS.ProcessEnv>} the settings by which the tests find it
   */
  async startRabbit(onProgress) {
    const password = randomBytes(16).toString('hex');
    const rabbit = await this.#start(startRabbit, 'rabbitmq', { password, management: true, disposable: true, onProgress });
    return { TEST_AMQP_URL: rabbit.url, TEST_RABBITMQ_MANAGEMENT_URL: rabbit.managementUrl };
  }

  /** @returns {Promise<NodeJS.ProcessEnv>} the settings by which the tests find it */
  async startPostgres() {
    const postgres = await this.#start(startPostgres, 'postgres', { fsync: false });
    return { TEST_DATABASE_URL: postgres.url, TEST_DATABASE_TEMPLATE: 'prepared' };
  }

  async remove() {
    this.#leaving.abort();
    for (const started of await Promise.allSettled(this.#starting)) {
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
    const directory = temporaryDirectory(`tests-${name}`, { inMemory: true });
    this.#directories.push(directory);
    const started = start({ directory: directory.path, abort: this.#leaving.signal, ...options });
    this.#starting.push(started);
    return started;
  }
}
