import { join } from 'node:path';
import { runQuietly } from '../../scripts/processes/command.mjs';
import { LOCAL, ROOT } from '../../scripts/checkout/project.mjs';
import { TABLES } from '../direct/statements.mjs';
import { System } from './system.mjs';

/** Where bench/plain is compiled to: not dist/, which goes into the image. */
export const BUILD = join(LOCAL, 'bench');

/** Nest's RabbitMQ transport, ValidationPipe, TypeORM `save`: bench/plain. */
export class Plain extends System {
  /** @param {import('./system.mjs').Place} place */
  constructor(place) {
    super('plain', place);
  }

  /** @override */
  async startChildren() {
    const { databaseUrl, amqpUrl } = this.place;
    const env = { DATABASE_URL: databaseUrl, AMQP_URL: amqpUrl, PORT: String(this.port) };
    /** @param {string} name */
    const program = (name) => join(BUILD, 'bench/plain', `${name}.js`);
    await runQuietly(process.execPath, [program('set-up')], {
      cwd: ROOT,
      env: { PATH: process.env.PATH, ...env },
      name: 'Set-up',
    });
    this.spawn('gateway', [program('gateway')], env);
    this.spawn('notifications', [program('notifications')], env);
  }
}

/** Fastify and PostgreSQL without a queue: bench/direct. */
export class Direct extends System {
  /** @param {import('./system.mjs').Place} place */
  constructor(place) {
    super('direct', place);
  }

  /** @override */
  async startChildren() {
    await this.sql.query(TABLES);
    await this.sql.query("INSERT INTO api_keys VALUES ('demo-key', encode(sha256('demo-token'), 'hex'))");
    const env = { DATABASE_URL: this.place.databaseUrl, PORT: String(this.port) };
    this.spawn('service', [join(ROOT, 'bench/direct/server.mjs')], env);
  }
}
