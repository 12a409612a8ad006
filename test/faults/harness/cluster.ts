import { connect } from 'amqplib';
import { Pool } from 'pg';
import { HEADER } from '@app/amqp/messages/headers';
import { PASSED } from '@app/amqp/calls/call-channels';
import { QUEUES } from '@app/rabbitmq/topology/topology';
import { freePort } from '@app/testing/free-port';
import type { Management } from '@app/testing/broker/management';
import { PrivateServer } from '@app/testing/system/private-server';
import { ServiceProcess, type AppName } from '@app/testing/system/service-process';
import { FaultProxy } from './fault-proxy';
import { LoadBalancer } from './load-balancer';
import type { Random } from './random';
import { createTenants, setUp } from './set-up';

/** Timeout of calls in the gateway. Longer than the statement timeout, so that both limits are tested. */
export const REQUEST_TIMEOUT_MS = 3000;

export interface Credentials {
  'x-svc-api-key': string;
  'x-svc-auth-token': string;
}

/** One service process and its links. */
export interface Node {
  process: ServiceProcess;
  toBroker: FaultProxy;
  toDatabase?: FaultProxy;
}

export interface Gateway extends Node {
  url: string;
}

export interface ClusterOptions {
  gateways?: number;
  users?: number;
  writers?: number;
  /** Additional settings. */
  env?: Partial<Record<AppName, Record<string, string>>>;
  /** false: everything except the services is started. */
  started?: boolean;
  /** The built checkout whose set-up, tools and services are used. Default: this one. */
  root?: string;
}

/** Queues of commands, of retries, and of dead letters. */
const COMMANDS = /^\w+\.(calls|commands(\.\d)?|again|suspects)$/;
const RETRIES = /^\w+\.retry\.\w+$/;
const LETTERS = /^\w+\.commands\.(dead|refused|crashed)$/;

export type QueueKind = 'commands' | 'dead' | 'retry';

/** The whole system with its own servers, and a fault proxy in every link. PostgreSQL writes to disk as in production. */
export class Cluster {
  readonly gateways: Gateway[] = [];
  readonly usersReplicas: Node[] = [];
  readonly writers: Node[] = [];
  /** Two tenants for workloads, so that a row in the wrong tenant is found, and one that misbehaves. */
  tenants: readonly Credentials[];
  /** Direct connection to the database, without a proxy. */
  sql: Pool;
  management: Management;
  private balancer?: LoadBalancer;

  private constructor(
    readonly broker: PrivateServer,
    readonly database: PrivateServer,
    private readonly root: string,
  ) {}

  static async start(random: Random, options: ClusterOptions = {}): Promise<Cluster> {
    const [broker, database] = await Promise.all([
      PrivateServer.start('rabbitmq', '--management'),
      PrivateServer.start('postgres', '--fsync'),
    ]);
    const cluster = new Cluster(broker, database, options.root ?? process.cwd());
    try {
      await cluster.prepare(random, options);
      if (options.started !== false) await Promise.all(cluster.nodes.map(({ process }) => process.start()));
      if (cluster.gateways.length > 1) cluster.balancer = new LoadBalancer(cluster.gateways);
      return cluster;
    } catch (error) {
      await cluster.remove();
      throw error;
    }
  }

  /** The only gateway, or the first one. */
  get gateway(): Gateway {
    return this.gateways[0];
  }

  get users(): Node {
    return this.usersReplicas[0];
  }

  get nodes(): Node[] {
    return [...this.gateways, ...this.usersReplicas, ...this.writers];
  }

  get links(): FaultProxy[] {
    return this.nodes.flatMap(({ toBroker, toDatabase }) => [toBroker, toDatabase ?? []].flat());
  }

  /** URL for the next call. It does not change when a gateway restarts. */
  get gatewayUrl(): string {
    return this.balancer?.next() ?? this.gateway.url;
  }

  get environment(): Record<string, string> {
    return { AMQP_URL: this.broker.url, DATABASE_URL: this.database.url };
  }

  /**
   * Current number of ready messages in the queues of a kind, over AMQP: the numbers of the management API are seconds old. Suspects count as
   * commands.
   */
  waiting(kind: QueueKind): Promise<number> {
    return waitingOfKind(this.broker.url, kind);
  }

  /** Adds a writer, which is not started. */
  async addWriter(random: Random, env?: Record<string, string>): Promise<void> {
    this.writers.push(await this.node('notifications', random, env));
  }

  /** Runs `npm run setup` of a checkout. */
  async setUp(root: string): Promise<void> {
    await setUp(root, this.environment);
  }

  async remove(): Promise<void> {
    this.balancer?.stop();
    await Promise.all(this.nodes.map(({ process }) => process.stop('SIGKILL')));
    await Promise.all(this.links.map((link) => link.close()));
    await this.sql?.end();
    await Promise.all([this.broker.remove(), this.database.remove()]);
  }

  private async prepare(random: Random, options: ClusterOptions): Promise<void> {
    this.management = this.broker.management;
    // Without a listener a lost idle connection would end the process.
    this.sql = new Pool({ connectionString: this.database.url, max: 2, connectionTimeoutMillis: 2000 });
    this.sql.on('error', () => undefined);
    await this.setUp(this.root);
    this.tenants = await createTenants(this.root, this.environment);
    const { gateways = 1, users = 1, writers = 2 } = options;
    for (let number = 0; number < gateways; number++) {
      const port = await freePort();
      const env = { PORT: String(port), SHUTDOWN_DELAY_MS: gateways > 1 ? '1000' : '0', ...options.env?.gateway };
      this.gateways.push({ ...(await this.node('gateway', random, env)), url: `http://127.0.0.1:${port}` });
    }
    for (let number = 0; number < users; number++) this.usersReplicas.push(await this.node('users', random, options.env?.users));
    for (let number = 0; number < writers; number++) await this.addWriter(random, options.env?.notifications);
  }

  private async node(app: AppName, random: Random, env: Record<string, string> = {}): Promise<Node> {
    const toBroker = await FaultProxy.to(this.broker.url, random.next);
    const toDatabase = app === 'gateway' ? undefined : await FaultProxy.to(this.database.url, random.next);
    const process = new ServiceProcess(app, {
      AMQP_URL: toBroker.through(this.broker.url),
      ...(toDatabase && { DATABASE_URL: toDatabase.through(this.database.url) }),
      REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS),
      ...env,
    });
    process.root = this.root;
    return { process, toBroker, toDatabase };
  }
}

/** Number of ready messages in all queues of a kind. */
export async function waitingOfKind(brokerUrl: string, kind: QueueKind): Promise<number> {
  const ofKind = { commands: COMMANDS, dead: LETTERS, retry: RETRIES }[kind];
  return (await waitingIn(brokerUrl, ofKind)).reduce((sum, { count }) => sum + count, 0);
}

/** Number of ready messages in each of our queues with a matching name, read with the full-rights account. */
export async function waitingIn(brokerUrl: string, names: RegExp): Promise<{ name: string; count: number }[]> {
  const connection = await connect(brokerUrl);
  try {
    const channel = await connection.createChannel();
    const chosen = QUEUES.filter(({ name }) => names.test(name));
    return await Promise.all(chosen.map(async ({ name }) => ({ name, count: (await channel.checkQueue(name)).messageCount })));
  } finally {
    await connection.close();
  }
}

/** Queues with commands and letters that are not settled, once for each message. The first messages of channels are none: they have no effect. */
export async function unsettledIn(brokerUrl: string): Promise<string[]> {
  const connection = await connect(brokerUrl);
  const unsettled: string[] = [];
  try {
    const channel = await connection.createChannel();
    for (const { name } of QUEUES.filter((queue) => [COMMANDS, RETRIES, LETTERS].some((names) => names.test(queue.name))))
      for (let message = await channel.get(name); message; message = await channel.get(name))
        if (message.properties.headers?.[HEADER.deadline] !== PASSED) unsettled.push(name);
    return unsettled;
  } finally {
    await connection.close();
  }
}
