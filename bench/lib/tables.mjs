import { report } from '../../scripts/checkout/progress.mjs';
import { seedOurs } from './seed.mjs';
import { whole } from './statistics.mjs';

/**
 * The notifications of each size, in a schema of its own; the service has that whose name it knows. Sizes take turns within a minute so:
 * a machine is not as fast in one minute as in another.
 */
export class Tables {
  /** @type {number | undefined} */
  #used;

  /** @param {import('../lib/ours.mjs').Ours} system */
  constructor(system) {
    this.system = system;
  }

  /** @param {number} size */
  async store(size) {
    if (this.#used !== undefined) {
      await this.system.sql.query(`ALTER SCHEMA notifications RENAME TO ${schemaOf(this.#used)}`);
      await this.system.setUp('notifications');
    }
    this.#used = size;
    report(`    storing ${whole(size)} notifications`);
    await seedOurs(this.system.sql, size, { toAll: true });
  }

  /** @param {number} size */
  async use(size) {
    if (size === this.#used) return;
    await this.system.sql.query(`
      BEGIN;
      ALTER SCHEMA notifications RENAME TO ${schemaOf(Number(this.#used))};
      ALTER SCHEMA ${schemaOf(size)} RENAME TO notifications;
      COMMIT`);
    this.#used = size;
  }
}

/** @param {number} size */
const schemaOf = (size) => `notifications_${size}`;
