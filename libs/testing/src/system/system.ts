import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { HTTP_MESSAGES, type HttpPath } from '@app/contracts/all-messages';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { createTestBroker } from '../broker/broker';
import { copyDatabase, createEmptyDatabase } from '../database/server-databases';
import { ServiceProcess, type AppName } from './service-process';

export const DEMO_HEADERS = { 'x-svc-api-key': 'demo-key', 'x-svc-auth-token': 'demo-token' };

export interface HttpAnswer {
  status: number;
  headers: Headers;
  /** The parsed body. */
  body: { result?: Record<string, unknown>; error?: { message: string; status: string; details?: unknown[] } };
}

type WithoutVersion<P> = P extends `/v1/${infer O}` ? O : never;

/** The path of an HTTP operation, without its version. */
export type Operation = WithoutVersion<HttpPath>;

/** All operations with a door over HTTP. */
export const OPERATIONS = HTTP_MESSAGES.map(({ http }) => http.path.replace('/v1/', '') as Operation);

/** The routing key of an operation over the broker. */
export const patternOf = (operation: Operation): string =>
  HTTP_MESSAGES.find(({ http }) => http.path === `/v1/${operation}`)!.pattern;

export interface SystemOptions {
  /**
   * Settings for all three services. By default the rate of a key is not limited, because the speed of a test depends on its machine. The limit has
   * its own tests.
   */
  env?: Record<string, string>;
  /** A broker that the test may break. Default: a virtual host on the broker of the test run. */
  amqpUrl?: string;
  /** A server that the test may break. Default: a database on the server of the test run. */
  databaseUrl?: string;
  /** Whether `npm run setup` itself is under test: else the database is a copy of one that it has prepared. */
  wholeSetUp?: boolean;
}

/** Gateway, users and notifications as processes, with their own virtual host and database. */
export class System {
  /** All lines that the setup wrote to stdout and stderr. */
  readonly setUpOutput: string[] = [];

  private constructor(
    readonly amqpUrl: string,
    readonly databaseUrl: string,
    readonly env: Record<string, string>,
    readonly services: Record<AppName, ServiceProcess>,
    private readonly drops: (() => Promise<void>)[],
  ) {}

  static async start(options: SystemOptions = {}): Promise<System> {
    const drops: (() => Promise<void>)[] = [];
    let { amqpUrl, databaseUrl } = options;
    if (!amqpUrl) {
      const broker = await createTestBroker();
      amqpUrl = broker.url;
      drops.push(() => broker.drop());
    }
    const { TEST_DATABASE_TEMPLATE: template, TEST_EARLIER_ROOT: earlier } = process.env;
    const copies = Boolean(template) && !earlier && !databaseUrl && !options.wholeSetUp;
    if (!databaseUrl) {
      const database = await (copies ? copyDatabase(template!, migrated) : createEmptyDatabase());
      databaseUrl = database.url;
      drops.push(() => database.drop());
    }
    const { TEST_CALLS_EXCHANGE: callsExchange } = process.env;
    const beside: Record<string, string> = callsExchange ? { CALLS_EXCHANGE: callsExchange } : {};
    const env = { AMQP_URL: amqpUrl, DATABASE_URL: databaseUrl, RATE_LIMIT_PER_SECOND: '0', ...beside, ...options.env };
    const service = (app: AppName) => new ServiceProcess(app, { ...env, ...(app === 'gateway' && { PORT: '0' }) });
    const services = { gateway: service('gateway'), users: service('users'), notifications: service('notifications') };
    const system = new System(amqpUrl, databaseUrl, env, services, drops);
    try {
      if (copies) await declareTopology(amqpUrl);
      else {
        const { stdout, stderr } = await setUp(env);
        system.setUpOutput.push(...`${stdout}${stderr}`.split('\n').filter(Boolean));
      }
      await Promise.all(Object.values(services).map((one) => one.start()));
      return system;
    } catch (error) {
      // A leftover process would keep the test runner from ending.
      await system.stop();
      throw error;
    }
  }

  /** A further process of a service, not started. */
  replica(app: AppName, env: Record<string, string> = {}): ServiceProcess {
    return new ServiceProcess(app, { ...this.env, ...(app === 'gateway' && { PORT: '0' }), ...env });
  }

  /** Calls an operation with the demo credentials. */
  call(operation: Operation, data: unknown, headers: Record<string, string> = {}, baseUrl?: string): Promise<HttpAnswer> {
    return this.post(operation, JSON.stringify({ data }), headers, baseUrl);
  }

  /** Like `call`, with a raw body. */
  async post(
    operation: string,
    body: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = {},
    baseUrl = this.services.gateway.url,
  ): Promise<HttpAnswer> {
    const response = await fetch(`${baseUrl}/v1/${operation}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...DEMO_HEADERS, ...headers },
      body,
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as HttpAnswer['body'] };
  }

  /** Creates an API key and a token. With a statement, because a start of the command line tool takes a second. */
  async createKey(): Promise<{ 'x-svc-api-key': string; 'x-svc-auth-token': string }> {
    const [key, token] = [`key_${randomBytes(12).toString('hex')}`, `tok_${randomBytes(32).toString('base64url')}`];
    const client = new Client({ connectionString: this.databaseUrl });
    await client.connect();
    try {
      await client.query(
        `WITH created AS (INSERT INTO users.api_keys (key, name) VALUES ($1, $1))
         INSERT INTO users.tokens (id, api_key, hash) VALUES ($2, $1, $3)`,
        [key, randomBytes(5).toString('hex'), createHash('sha256').update(token).digest()],
      );
    } finally {
      await client.end();
    }
    return { 'x-svc-api-key': key, 'x-svc-auth-token': token };
  }

  keys(...words: string[]): Promise<string> {
    return this.program('dist/apps/users/src/tools/keys.main.js', words);
  }

  /** Runs a program of a tool itself, which takes half of the time. @throws Error with its stderr, if it fails */
  async program(path: string, words: string[], env: Record<string, string> = {}): Promise<string> {
    return (await run(path, words, { ...this.env, ...env })).stdout;
  }

  /** Runs a tool for operators as `npm run` does. @throws Error with its stderr, if it fails */
  async tool(words: string[], env: Record<string, string> = {}): Promise<string> {
    return (await run('scripts/tool.mjs', words, { ...this.env, ...env })).stdout;
  }

  /** The text that such a tool writes to stderr beside its result. */
  async notesOf(words: string[]): Promise<string> {
    return (await run('scripts/tool.mjs', words, this.env)).stderr;
  }

  async stop(): Promise<void> {
    await Promise.all(Object.values(this.services).map((service) => service.stop('SIGKILL')));
    for (const drop of this.drops) await drop();
  }
}

/** The steps of `npm run setup` for the database. */
async function migrated(url: string): Promise<void> {
  await run('scripts/setup.mjs', ['users', 'notifications'], { DATABASE_URL: url, DEMO_CREDENTIALS: 'true' });
}

/** Runs the steps of `npm run setup`. If TEST_EARLIER_ROOT is set, that version declares its topology first: see scripts/test-compat.mjs. */
async function setUp(env: Record<string, string>): Promise<{ stdout: string; stderr: string }> {
  const { TEST_EARLIER_ROOT: earlier } = process.env;
  if (earlier) await run('scripts/setup.mjs', ['topology'], env, earlier);
  return run('scripts/setup.mjs', [], { ...env, DEMO_CREDENTIALS: 'true' });
}

const run = (program: string, parameters: string[], env: Record<string, string>, root = process.cwd()) =>
  promisify(execFile)(process.execPath, [join(root, program), ...parameters], {
    env: { PATH: process.env.PATH, ...env },
  });
