import { join } from 'node:path';
import pg from 'pg';
import { eventually } from './eventually.mjs';
import { runQuietly } from '../../scripts/lib/command.mjs';
import { freePorts } from '../../scripts/lib/free-port.mjs';
import { LOCAL, ROOT, mainOf } from '../../scripts/lib/project.mjs';
import { TABLES } from '../direct/statements.mjs';
import { notification } from '../workloads.mjs';
import { Child } from './child.mjs';

export const PLAIN_BUILD = join(LOCAL, 'bench');
export const HEADERS = { 'content-type': 'application/json', 'x-svc-api-key': 'demo-key', 'x-svc-auth-token': 'demo-token' };
const SETTLED_WITHIN_MS = 120_000;

/**
 * A system under test.
 * @typedef {object} System
 * @property {string} name
 * @property {string} database
 * @property {string} url where it takes calls
 * @property {Child[]} children
 * @property {pg.Pool} sql
 * @property {() => Promise<void>} settle resolves when nothing is left to do of what was asked
 * @property {(how?: NodeJS.Signals) => Promise<void>} stop
 */

export const SYSTEMS = { ours: startOurs, plain: startPlain, direct: startDirect };

/**
 * The three services as they run in production, with nothing switched off but the limit of calls a second.
 * @param {object} options
 * @param {number} [options.writers] processes of notifications
 * @param {(url: string) => string} [options.toDatabase] the way of notifications to its database
 * @returns {Promise<System & { addWriter: () => Promise<void> }>}
 */
async function startOurs({ database, databaseUrl, amqpUrl, logs, writers = 1, toDatabase = (url) => url }) {
  const env = { DATABASE_URL: databaseUrl, AMQP_URL: amqpUrl, LOG_LEVEL: 'info', RATE_LIMIT_PER_SECOND: '0' };
  const steps = ['users', 'notifications', 'topology'];
  await runQuietly(process.execPath, [join(ROOT, 'scripts/setup.mjs'), ...steps], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, ...env, DEMO_CREDENTIALS: 'true' },
    name: 'Setup',
  });
  const [port] = await freePorts([undefined]);
  const children = [];
  const add = async (name, service, more = {}) => {
    const [healthPort] = await freePorts([undefined]);
    const settings = { ...env, ...more, HEALTH_PORT: String(healthPort) };
    const child = new Child(name, [mainOf(service)], settings, join(logs, `${database}-${name}.log`));
    children.push(child);
    await child.untilReady(async () => (await fetch(`http://127.0.0.1:${healthPort}/health/ready`)).ok);
  };
  const addWriter = (number) =>
    add(`notifications${number > 1 ? ` ${number}` : ''}`, 'notifications', { DATABASE_URL: toDatabase(databaseUrl) });
  const system = systemOf('ours', database, databaseUrl, port, children);
  await system.orStop(async () => {
    await Promise.all([add('users', 'users'), add('gateway', 'gateway', { PORT: String(port) }), addWriter(1)]);
    for (let number = 2; number <= writers; number++) await addWriter(number);
    await firstAnswer(system);
  });
  // Events go out after the answer: they are part of the price.
  const settle = () =>
    eventually('the outbox is empty', SETTLED_WITHIN_MS, async () => {
      const { rows } = await system.sql.query(
        'SELECT NOT EXISTS (SELECT FROM notifications.outbox) AND NOT EXISTS (SELECT FROM users.outbox) AS done',
      );
      return rows[0].done;
    });
  return { ...system, settle };
}

/** Nest's RabbitMQ transport, ValidationPipe, TypeORM `save`: bench/plain. */
async function startPlain({ database, databaseUrl, amqpUrl, logs }) {
  const [port] = await freePorts([undefined]);
  const env = { DATABASE_URL: databaseUrl, AMQP_URL: amqpUrl, PORT: String(port) };
  const program = (name) => join(PLAIN_BUILD, 'plain', `${name}.js`);
  await runQuietly(process.execPath, [program('set-up')], { cwd: ROOT, env: { PATH: process.env.PATH, ...env }, name: 'Setup' });
  const start = (name) => new Child(`plain ${name}`, [program(name)], env, join(logs, `${database}-${name}.log`));
  const system = systemOf('plain', database, databaseUrl, port, [start('gateway'), start('notifications')]);
  await system.orStop(() => firstAnswer(system));
  return system;
}

/** Fastify and PostgreSQL without a queue: bench/direct. */
async function startDirect({ database, databaseUrl, logs }) {
  const [port] = await freePorts([undefined]);
  const child = () =>
    new Child(
      'direct service',
      [join(ROOT, 'bench/direct/server.mjs')],
      { DATABASE_URL: databaseUrl, PORT: String(port) },
      join(logs, `${database}.log`),
    );
  const children = [];
  const system = systemOf('direct', database, databaseUrl, port, children);
  await system.orStop(async () => {
    await system.sql.query(TABLES);
    await system.sql.query("INSERT INTO api_keys VALUES ('demo-key', encode(sha256('demo-token'), 'hex'))");
    children.push(child());
    await firstAnswer(system);
  });
  return system;
}

function systemOf(name, database, databaseUrl, port, children) {
  const sql = new pg.Pool({ connectionString: databaseUrl, max: 2 });
  sql.on('error', () => {});
  const stop = async (how) => {
    await Promise.all(children.map((child) => child.stop(how)));
    await sql.end();
  };
  const orStop = async (start) => {
    try {
      await start();
    } catch (error) {
      await stop('SIGKILL');
      throw error;
    }
  };
  return { name, database, databaseUrl, url: `http://127.0.0.1:${port}`, children, sql, settle: async () => {}, stop, orStop };
}

/** Every process has to have its part in it before it counts as started. */
async function firstAnswer(system) {
  await eventually(`${system.name} answers`, 30_000, async () => {
    for (const child of system.children) child.check();
    await call(system, 'notifications/add', notification(0, 2));
    return true;
  });
}

/** One call, with the parsed answer. Throws unless it is 200. */
export async function call({ url, name }, operation, data) {
  const response = await fetch(`${url}/v1/${operation}`, { method: 'POST', headers: HEADERS, body: JSON.stringify({ data }) });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${name} answers ${operation} with ${response.status}: ${text.slice(0, 200)}`);
  return JSON.parse(text);
}
