import { join } from 'node:path';
import { runQuietly } from '../../scripts/processes/command.mjs';
import { freePorts } from '../../scripts/processes/free-port.mjs';
import { NODE_FLAGS, ROOT } from '../../scripts/checkout/project.mjs';
import { eventually } from './eventually.mjs';
import { System } from './system.mjs';

/** See {@link Ours.heap}. */
const INSTRUMENTS = ['--expose-gc', '--require', join(ROOT, 'bench/lib/collect.cjs')];
const SETTLED_WITHIN_MS = 120_000;
const NOTHING_LEFT = `
  SELECT NOT EXISTS (SELECT FROM notifications.outbox) AND NOT EXISTS (SELECT FROM users.outbox) AS done`;

/** The three services as they run in production, but for the limit of calls a second, and with room for 1000 calls of one key at a time. */
export class Ours extends System {
  /**
   * Ports of health and metrics, by process.
   * @type {Record<string, number>}
   */
  healthPorts = {};

  /**
   * @param {import('./system.mjs').Place} place
   */
  constructor(place) {
    super('ours', place);
    const { databaseUrl, amqpUrl, settings } = place;
    const limits = { RATE_LIMIT_PER_SECOND: '0', MAX_IN_FLIGHT: '4000' };
    this.env = { DATABASE_URL: databaseUrl, AMQP_URL: amqpUrl, LOG_LEVEL: 'info', ...limits, ...settings };
  }

  /** @override */
  async startChildren() {
    // Broker accounts need the management plugin: here everybody is the account with all rights.
    await this.setUp('users', 'notifications', 'topology');
    await Promise.all([
      this.#add('gateway', 'gateway', { PORT: String(this.port) }),
      this.#add('users', 'users'),
      this.#add('notifications', 'notifications', this.#writerSettings),
    ]);
  }

  /**
   * Runs steps of scripts/setup.mjs.
   * @param {string[]} steps
   */
  async setUp(...steps) {
    const env = { PATH: process.env.PATH, ...this.env, DEMO_CREDENTIALS: 'true' };
    await runQuietly(process.execPath, [join(ROOT, 'scripts/setup.mjs'), ...steps], { cwd: ROOT, env, name: 'Set-up' });
  }

  /** Starts one more gateway, and adds it to `urls`. */
  async addGateway() {
    const [port] = await freePorts([undefined]);
    await this.#add(`gateway ${this.urls.length + 1}`, 'gateway', { PORT: String(port) });
    this.urls.push(`http://127.0.0.1:${port}`);
  }

  /**
   * Starts or ends processes of notifications until there are `count`.
   * @param {number} count
   */
  async setWriters(count) {
    this.warm.clear();
    const writers = this.children.filter(({ name }) => name.startsWith('notifications'));
    for (const writer of writers.slice(count)) {
      await writer.stop();
      this.children.splice(this.children.indexOf(writer), 1);
    }
    for (let number = writers.length + 1; number <= count; number++)
      await this.#add(number === 1 ? 'notifications' : `notifications ${number}`, 'notifications', this.#writerSettings);
  }

  /**
   * Events go out after the answer, and are part of the price.
   * @override
   */
  settle() {
    return eventually('the outboxes are empty', SETTLED_WITHIN_MS, async () => {
      const { rows } = await this.sql.query(NOTHING_LEFT);
      return rows[0].done;
    });
  }

  /**
   * One value of `/metrics`.
   * @param {string} process
   * @param {string} name
   */
  async metric(process, name) {
    const text = await (await fetch(`http://127.0.0.1:${this.healthPorts[process]}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  }

  /** Bytes of the heap of each process that are in use: after two collections, because the first leaves what has finalizers. */
  async heap() {
    const entries = this.children.map(async ({ name, pid }) => {
      for (let times = 0; times < 2; times++) {
        if (pid) process.kill(pid, 'SIGUSR2');
        // Answered when the process is done with it.
        await this.metric(name, 'nodejs_heap_size_used_bytes');
      }
      return [name, await this.metric(name, 'nodejs_heap_size_used_bytes')];
    });
    return Object.fromEntries(await Promise.all(entries));
  }

  get #writerSettings() {
    const { writerDatabaseUrl, writerSettings } = this.place;
    return { ...(writerDatabaseUrl && { DATABASE_URL: writerDatabaseUrl(this.place.databaseUrl) }), ...writerSettings };
  }

  /** @param {string} name @param {string} service @param {NodeJS.ProcessEnv} [settings] */
  async #add(name, service, settings = {}) {
    const [healthPort] = await freePorts([undefined]);
    this.healthPorts[name] = healthPort;
    const child = this.spawn(
      name,
      [...INSTRUMENTS, ...NODE_FLAGS, join(this.place.dist ?? join(ROOT, 'dist'), `${service}.js`)],
      {
        ...this.env,
        ...settings,
        HEALTH_PORT: String(healthPort),
      },
    );
    await child.untilReady(async () => (await fetch(`http://127.0.0.1:${healthPort}/health/ready`)).ok);
  }
}
