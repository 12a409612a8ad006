import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '../infra/postgres.mjs';
import { startRabbit } from '../infra/rabbitmq.mjs';

/** A RabbitMQ and a PostgreSQL for one test run, with data that nobody will miss. */
export class TestServers {
  #directories = [];
  #servers = [];

  /** @returns {Promise<Record<string, string>>} the settings by which the tests find it */
  async startRabbit(onProgress) {
    const password = randomBytes(16).toString('hex');
    const rabbit = await startRabbit({
      directory: this.#make('rabbitmq'),
      password,
      management: true,
      removeOnDeath: true,
      onProgress,
    });
    this.#servers.push(rabbit.server);
    return { TEST_AMQP_URL: rabbit.url, TEST_RABBITMQ_MANAGEMENT_URL: rabbit.managementUrl };
  }

  /** @returns {Promise<Record<string, string>>} the settings by which the tests find it */
  async startPostgres() {
    const postgres = await startPostgres({ directory: this.#make('postgres'), removeOnDeath: true, fsync: false });
    this.#servers.push(postgres.server);
    return { TEST_DATABASE_URL: postgres.url };
  }

  async remove() {
    for (const server of this.#servers) {
      await server.kill();
      await server.dismissReaper();
    }
    for (const directory of this.#directories) rmSync(directory, { recursive: true, force: true });
  }

  #make(name) {
    const directory = mkdtempSync(join(tmpdir(), `tests-${name}-`));
    this.#directories.push(directory);
    return directory;
  }
}
