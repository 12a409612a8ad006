import pg from 'pg';
import { freePorts } from '../../scripts/processes/free-port.mjs';
import { notification } from '../workloads.mjs';
import { Child } from './child.mjs';
import { eventually } from './eventually.mjs';

export const HEADERS = { 'content-type': 'application/json', 'x-svc-api-key': 'demo-key', 'x-svc-auth-token': 'demo-token' };

/**
 * The servers and settings that the laboratory gives a system.
 * @typedef {object} Place
 * @property {string} database
 * @property {string} databaseUrl
 * @property {string} amqpUrl
 * @property {string} logs
 * @property {(url: string) => string} [writerDatabaseUrl] the way of our notifications service to its database
 * @property {NodeJS.ProcessEnv} [writerSettings]
 * @property {NodeJS.ProcessEnv} [settings] of all processes of ours
 * @property {string} [dist] another build of ours than the checkout's
 */

/** A system under test: its processes, its database, and where it takes calls. */
export class System {
  /** @type {Child[]} */
  children = [];

  /**
   * Operations that its processes have been asked often enough.
   * @type {Set<string>}
   */
  warm = new Set();
  port = 0;
  url = '';

  /** Where the connections of a load go, in turn. */
  urls = [''];

  /**
   * @param {string} name
   * @param {Place} place
   */
  constructor(name, place) {
    this.name = name;
    this.place = place;
    this.sql = new pg.Pool({ connectionString: place.databaseUrl, max: 2 });
    this.sql.on('error', () => {}); // it ends with its server
  }

  /** Starts what it consists of. */
  async startChildren() {}

  /** @returns {Promise<this>} when it answers; what was started of it is ended otherwise */
  async start() {
    [this.port] = await freePorts([undefined]);
    this.url = `http://127.0.0.1:${this.port}`;
    this.urls = [this.url];
    try {
      await this.startChildren();
      await eventually(`${this.name} answers`, 30_000, async () => {
        this.check();
        await this.call('notifications/add', notification(0, 2));
        return true;
      });
      return this;
    } catch (error) {
      await this.stop('SIGKILL');
      throw error;
    }
  }

  /**
   * @param {string} name
   * @param {string[]} args
   * @param {NodeJS.ProcessEnv} env
   * @returns {Child} which is not ready yet
   */
  spawn(name, args, env) {
    const child = new Child(name, args, env, `${this.place.logs}/${this.place.database}-${name.replaceAll(' ', '-')}.log`);
    this.children.push(child);
    return child;
  }

  get pids() {
    return Object.fromEntries(this.children.map(({ name, pid }) => [name, pid]));
  }

  /** Throws when one of its processes has ended by itself. */
  check() {
    for (const child of this.children) child.check();
  }

  /**
   * One call, with the parsed answer. Throws unless it is 200.
   * @param {string} operation
   * @param {object} data
   */
  async call(operation, data) {
    const body = JSON.stringify({ data });
    const response = await fetch(`${this.url}/v1/${operation}`, { method: 'POST', headers: HEADERS, body });
    const text = await response.text();
    if (response.status !== 200)
      throw new Error(`${this.name} answers ${operation} with ${response.status}: ${text.slice(0, 200)}`);
    return JSON.parse(text);
  }

  /**
   * Resolves when nothing is left to do of what was asked.
   * @returns {Promise<void>}
   */
  async settle() {}

  /** @param {NodeJS.Signals} [how] */
  async stop(how) {
    await Promise.all(this.children.map((child) => child.stop(how)));
    await this.sql.end();
  }
}
