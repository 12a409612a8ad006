import { randomBytes } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Pool } from 'pg';
import { freePort } from '@app/testing/free-port';
import { PrivateServer } from '@app/testing/system/private-server';
import type { ServiceProcess } from '@app/testing/system/service-process';
import { System } from '@app/testing/system/system';
import { FaultProxy } from '../../faults/harness/fault-proxy';
import type { Sources } from './sources';

/** A round trip to the database takes so much longer for a writer: so it waits for the database, as in a cluster, and not for the processor. */
const LATENCY_MS = 5;
/** Few at a time, so that one writer is slow enough for the machine of the test. */
const WRITER_PREFETCH = '4';
/** The label by which the rendered query chooses the processes of an installation. */
const NAMESPACE = 'collaboration';

type Servers = Record<'broker' | 'database' | 'prometheus', PrivateServer>;

/** A system with any number of writers, and a Prometheus that reads their metrics. */
export class ScalingSystem {
  readonly exitCodes: (number | null)[] = [];
  private readonly writers: { process: ServiceProcess; healthPort: number; started: Promise<unknown> }[] = [];
  private readonly ending: Promise<unknown>[] = [];

  private readonly sql: Pool;

  private constructor(
    private readonly servers: Servers,
    private readonly proxy: FaultProxy,
    private readonly system: System,
    readonly sources: Sources,
  ) {
    this.sql = new Pool({ connectionString: servers.database.url, max: 1 });
  }

  static async start(maxConnections: number): Promise<ScalingSystem> {
    const [broker, database, prometheus] = await Promise.all([
      PrivateServer.start('rabbitmq', '--management'),
      PrivateServer.start('postgres', '--setting', `max_connections=${maxConnections}`),
      PrivateServer.start('prometheus'),
    ]);
    const proxy = await FaultProxy.to(database.url);
    proxy.change({ latencyMs: LATENCY_MS }, 'toServer');
    // The only notifications process that System starts is the reader.
    const env = { NOTIFICATIONS_QUEUES: 'queries,events' };
    const system = await System.start({ amqpUrl: broker.url, databaseUrl: database.url, env, wholeSetUp: true });
    const managementUrl = await scalerAccount(broker);
    const sources = { managementUrl, prometheusUrl: prometheus.url };
    return new ScalingSystem({ broker, database, prometheus }, proxy, system, sources);
  }

  get broker(): PrivateServer {
    return this.servers.broker;
  }

  get replicas(): number {
    return this.writers.length;
  }

  /** Starts or stops writers. It waits for neither, as a cluster. */
  async scaleTo(replicas: number): Promise<void> {
    while (this.writers.length > replicas) {
      const { process, started } = this.writers.pop()!;
      this.ending.push(started.then(async () => this.exitCodes.push(await process.stop())));
    }
    while (this.writers.length < replicas) {
      const healthPort = await freePort();
      const process = this.system.replica('notifications', {
        NOTIFICATIONS_QUEUES: 'commands',
        NOTIFICATIONS_COMMAND_PREFETCH: WRITER_PREFETCH,
        DATABASE_URL: this.proxy.through(this.servers.database.url),
        HEALTH_PORT: String(healthPort),
      });
      this.writers.push({ process, healthPort, started: process.start() });
    }
    const targets = this.writers.map(({ healthPort }) => `127.0.0.1:${healthPort}`);
    const file = join(this.servers.prometheus.directory, 'targets.json');
    // Replaced as a whole, because Prometheus reads it at any time.
    writeFileSync(`${file}.new`, JSON.stringify([{ targets, labels: { namespace: NAMESPACE } }]));
    renameSync(`${file}.new`, file);
  }

  /** Until every writer that was started is ready, and every one that was stopped has ended. */
  async settled(): Promise<void> {
    await Promise.all([...this.writers.map(({ started }) => started), ...this.ending]);
  }

  /** Connections to the database, of whichever program. */
  async connections(): Promise<number> {
    const { rows } = await this.sql.query<{ count: number }>(
      `SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend'`,
    );
    return rows[0].count;
  }

  async stored(): Promise<number> {
    const { rows } = await this.sql.query<{ count: number }>('SELECT count(*)::int FROM notifications.notifications');
    return rows[0].count;
  }

  async remove(): Promise<void> {
    await Promise.all(this.writers.map(({ process }) => process.stop('SIGKILL')));
    await Promise.allSettled(this.ending);
    await this.system.stop();
    await this.sql.end();
    await this.proxy.close();
    await Promise.all(Object.values(this.servers).map((server) => server.remove()));
  }
}

/** The account of deploy/kubernetes/components/keda: it may read the management API, and nothing in the virtual host. */
async function scalerAccount({ management, managementUrl }: PrivateServer): Promise<string> {
  const password = randomBytes(12).toString('hex');
  await management.put('users/scaler', { password, tags: 'monitoring' });
  await management.put('permissions/%2F/scaler', { configure: '^$', write: '^$', read: '^$' });
  return Object.assign(new URL(managementUrl), { username: 'scaler', password }).href;
}
