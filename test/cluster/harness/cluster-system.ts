import type { Pool } from 'pg';
import { freePort } from '@app/testing/free-port';
import { ServiceProcess, type AppName } from '@app/testing/system/service-process';
import { REQUEST_TIMEOUT_MS, waitingOfKind, type Credentials, type QueueKind } from '../../faults/harness/cluster';
import { FaultProxy } from '../../faults/harness/fault-proxy';
import { createTenants, setUp } from '../../faults/harness/set-up';
import { LoadBalancer } from '../../faults/harness/load-balancer';
import { addressOf, BrokerCluster } from './broker-cluster';
import { DatabasePair } from './database-pair';

/** Time in which a gateway leaves the balancer before it stops. */
const SHUTDOWN_DELAY_MS = 1000;

export interface ClusterSystemOptions {
  gateways?: number;
  users?: number;
  writers?: number;
  standby?: boolean;
  fsync?: boolean;
  /** Seconds until a silent broker counts as lost. A busy machine needs more than one that only runs this. */
  tickSeconds?: number;
}

export interface Service {
  process: ServiceProcess;
}

export interface Gateway extends Service {
  url: string;
  /** Its ways to the brokers. The other services have none of their own. */
  toBrokers: readonly FaultProxy[];
}

/** Several processes of each service, three brokers, and a database with a synchronous standby. */
export class ClusterSystem {
  readonly gateways: Gateway[] = [];
  readonly usersReplicas: Service[] = [];
  readonly writers: Service[] = [];
  tenants: readonly Credentials[];
  private balancer?: LoadBalancer;

  private constructor(
    readonly brokers: BrokerCluster,
    readonly database: DatabasePair,
  ) {}

  static async start(options: ClusterSystemOptions = {}): Promise<ClusterSystem> {
    const { gateways = 2, users = 2, writers = 3, standby = true, fsync = true, tickSeconds } = options;
    const [brokers, database] = await Promise.allSettled([
      BrokerCluster.start(tickSeconds),
      DatabasePair.start({ standby, fsync }),
    ]);
    if (brokers.status === 'rejected' || database.status === 'rejected') {
      for (const server of [brokers, database]) if (server.status === 'fulfilled') await server.value.remove();
      throw [brokers, database].find((server) => server.status === 'rejected')?.reason;
    }
    const system = new ClusterSystem(brokers.value, database.value);
    try {
      await system.setUp();
      system.tenants = await createTenants(process.cwd(), system.servers);
      for (let number = 0; number < gateways; number++) system.gateways.push(await system.newGateway());
      for (let number = 0; number < users; number++) system.usersReplicas.push(system.newService('users'));
      for (let number = 0; number < writers; number++) system.writers.push(system.newService('notifications'));
      // Not all at once: together they take many seconds of processor time.
      for (const nodes of [system.usersReplicas, system.writers, system.gateways])
        await Promise.all(nodes.map(({ process }) => process.start()));
      system.balancer = new LoadBalancer(system.gateways);
      return system;
    } catch (error) {
      await system.remove();
      throw error;
    }
  }

  private get servers(): Record<string, string> {
    return { AMQP_URL: this.brokers.url, DATABASE_URL: this.database.primary.url };
  }

  /** Runs `npm run setup`. */
  setUp(): Promise<void> {
    return setUp(process.cwd(), this.servers);
  }

  get gateway(): Gateway {
    return this.gateways[0];
  }

  get nodes(): Service[] {
    return [...this.gateways, ...this.usersReplicas, ...this.writers];
  }

  /** URL for the next call. */
  get gatewayUrl(): string {
    return this.balancer?.next() ?? this.gateway.url;
  }

  get sql(): Pool {
    return this.database.sql;
  }

  waiting(kind: QueueKind): Promise<number> {
    return waitingOfKind(this.brokers.live.server.url, kind);
  }

  async remove(): Promise<void> {
    this.balancer?.stop();
    await Promise.all(this.nodes.map(({ process }) => process.stop('SIGKILL')));
    await Promise.all(this.gateways.flatMap(({ toBrokers }) => toBrokers.map((link) => link.close())));
    await Promise.all([this.brokers.remove(), this.database.remove()]);
  }

  private async newGateway(): Promise<Gateway> {
    const port = await freePort();
    const { brokers } = this.brokers;
    const toBrokers = await Promise.all(brokers.map(({ ports }) => FaultProxy.start({ host: '127.0.0.1', port: ports.amqp })));
    const process = new ServiceProcess('gateway', {
      AMQP_URL: this.brokers.urlThrough((broker) => addressOf(toBrokers[brokers.indexOf(broker)])),
      PORT: String(port),
      SHUTDOWN_DELAY_MS: String(SHUTDOWN_DELAY_MS),
      REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS),
    });
    return { process, url: `http://127.0.0.1:${port}`, toBrokers };
  }

  private newService(app: AppName): Service {
    return { process: new ServiceProcess(app, { AMQP_URL: this.brokers.url, DATABASE_URL: this.database.url }) };
  }
}
