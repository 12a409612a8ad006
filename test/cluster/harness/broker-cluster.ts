import { randomBytes } from 'node:crypto';
import { eventually } from '@app/testing/eventually';
import { freePort } from '@app/testing/free-port';
import type { Management } from '@app/testing/broker/management';
import { PrivateServer } from '@app/testing/system/private-server';
import { FaultProxy } from '../../faults/harness/fault-proxy';
import { PortMapper } from './port-mapper';

const SIZE = 3;
/** Time for a node to start, to join and to catch up. */
const COMPLETE_MS = 240_000;

interface Queue {
  name: string;
  type: string;
  node: string;
  leader?: string;
  members?: string[];
  online?: string[];
}

interface Connection {
  node: string;
  client_properties: { connection_name?: string };
}

interface Running {
  name: string;
  running: boolean;
  partitions: string[];
}

/** One broker of the cluster. Its ports stay the same, so that a broker can be replaced by an empty one. */
export class Broker {
  /** Whether it should be able to serve now. */
  up = false;
  server: PrivateServer;
  /** Ways from this broker to the others, by their names. */
  readonly links = new Map<string, FaultProxy>();
  private mapper: PortMapper;

  constructor(
    readonly name: string,
    readonly ports: { amqp: number; management: number; distribution: number },
  ) {}

  get node(): string {
    return `${this.name}@localhost`;
  }

  async connectTo(others: readonly Broker[]): Promise<void> {
    for (const { name, ports } of others)
      this.links.set(name, await FaultProxy.start({ host: '127.0.0.1', port: ports.distribution }));
    this.mapper = await PortMapper.start((name) => {
      const link = this.links.get(name);
      return link && Number(addressOf(link).split(':')[1]);
    });
  }

  /** Starts it without data. */
  async create(peers: string[], password: string, tickSeconds?: number): Promise<void> {
    const { amqp, management, distribution } = this.ports;
    const member = { node: this.node, peers, tickSeconds, distributionPort: distribution, epmdPort: this.mapper.port };
    const env = { CLUSTER_MEMBER: JSON.stringify({ member, password, ports: { amqp, management } }) };
    this.server = await PrivateServer.startWith('rabbitmq', { options: ['--management'], env });
    if (new URL(this.server.url).port !== String(amqp)) throw new Error(`port ${amqp} was taken meanwhile`);
    this.up = true;
  }

  /** A power cut, or an orderly stop: the node gives up its connections and leaders first, as the manual asks for. */
  async end(how: 'kill' | 'stop'): Promise<void> {
    this.up = false;
    if (how === 'stop') await this.server.order('rabbitmq-upgrade drain');
    await this.server.order(how);
  }

  async start(): Promise<void> {
    await this.server.order('start');
    this.up = true;
  }

  async remove(): Promise<void> {
    this.up = false;
    await this.server?.remove();
  }

  async close(): Promise<void> {
    this.mapper?.close();
    await Promise.all([...this.links.values()].map((link) => link.close()));
  }
}

/** Host and port of a proxy. */
export const addressOf = (proxy: FaultProxy): string => new URL(proxy.through('tcp://127.0.0.1:1')).host;

/** A cluster of brokers on this machine, with a fault proxy between any two of them. */
export class BrokerCluster {
  readonly brokers: Broker[] = [];
  private readonly password = randomBytes(16).toString('hex');

  private constructor(private readonly tickSeconds?: number) {}

  /**
   * Resolves when all nodes know each other.
   *
   * @param tickSeconds time until a silent node counts as lost; default that of RabbitMQ, 60 s
   */
  static async start(tickSeconds?: number): Promise<BrokerCluster> {
    const cluster = new BrokerCluster(tickSeconds);
    try {
      for (let number = 1; number <= SIZE; number++) {
        const ports = { amqp: await freePort(), management: await freePort(), distribution: await freePort() };
        cluster.brokers.push(new Broker(`rabbit${number}`, ports));
      }
      for (const broker of cluster.brokers) await broker.connectTo(cluster.brokers.filter((other) => other !== broker));
      // All must have ended before one failure removes them: a start that is under way cannot be undone.
      const starts = await Promise.allSettled(cluster.brokers.map((broker) => cluster.create(broker)));
      for (const start of starts) if (start.status === 'rejected') throw start.reason;
      await eventually(() => cluster.knowsItself(), COMPLETE_MS, 200);
      await cluster.useKhepri();
      return cluster;
    } catch (error) {
      await cluster.remove();
      throw error;
    }
  }

  /**
   * A new cluster of RabbitMQ 4.2 keeps its metadata in Khepri by itself, 4.0 when it is asked to. With Mnesia a node that was frozen for longer than
   * the tick, and went on at once, leaves a partition that lasts until a node is restarted.
   */
  private async useKhepri(): Promise<void> {
    const { rabbitmq_version: version } = await this.management.get<{ rabbitmq_version: string }>('overview');
    if (Number(version.split('.')[0]) >= 4) await this.live.server.order('rabbitmqctl enable_feature_flag --opt-in khepri_db');
  }

  /** Starts a broker without data. It joins the others. */
  create(broker: Broker): Promise<void> {
    return broker.create(
      this.brokers.map(({ node }) => node),
      this.password,
      this.tickSeconds,
    );
  }

  /** URLs of all brokers, in one list. */
  get url(): string {
    return this.urlThrough(({ ports }) => `127.0.0.1:${ports.amqp}`);
  }

  /** The same with another address for each broker. */
  urlThrough(addressOf: (broker: Broker) => string): string {
    return `amqp://collaboration:${this.password}@${this.brokers.map(addressOf).join(',')}`;
  }

  /** The first broker that should be able to serve. */
  get live(): Broker {
    const live = this.brokers.find(({ up }) => up);
    if (!live) throw new Error('no broker is running');
    return live;
  }

  get management(): Management {
    return this.live.server.management;
  }

  byNode(node: string): Broker {
    const found = this.brokers.find((broker) => broker.node === node);
    if (!found) throw new Error(`there is no broker ${node}`);
    return found;
  }

  others(than: Broker): Broker[] {
    return this.brokers.filter((broker) => broker !== than);
  }

  /** The broker with the leader of a queue. */
  async leaderOf(queue: string): Promise<Broker> {
    const found = await this.management.get<Queue>(`queues/%2F/${queue}`);
    return this.byNode(found.leader ?? '');
  }

  /** The broker with a queue that is on one node. */
  async nodeOf(queue: string): Promise<Broker> {
    return this.byNode((await this.management.get<Queue>(`queues/%2F/${queue}`)).node);
  }

  /** The broker with the most connections of a service. */
  async brokerOf(service: string): Promise<Broker> {
    const connections = await this.management.get<Connection[]>('connections');
    const ofService = connections.filter(({ client_properties: properties }) => properties.connection_name?.startsWith(service));
    const count = ({ node }: Broker) => ofService.filter((connection) => connection.node === node).length;
    return this.brokers.reduce((most, broker) => (count(broker) > count(most) ? broker : most));
  }

  /** Separates a broker from the others: nothing passes any more, and no connection ends. */
  isolate(broker: Broker): void {
    for (const link of this.linksOf(broker)) link.stall();
  }

  rejoin(broker: Broker): void {
    for (const link of this.linksOf(broker)) link.heal();
  }

  /** Waits until every broker runs in one cluster and every quorum queue has all its members. */
  async complete(): Promise<void> {
    await eventually(() => this.isComplete(), COMPLETE_MS, 250);
  }

  async remove(): Promise<void> {
    await Promise.all(this.brokers.map((broker) => broker.remove()));
    await Promise.all(this.brokers.map((broker) => broker.close()));
  }

  private linksOf(broker: Broker): FaultProxy[] {
    const inward = this.others(broker).flatMap(({ links }) => links.get(broker.name) ?? []);
    return [...broker.links.values(), ...inward];
  }

  private async knowsItself(): Promise<boolean> {
    const views = await Promise.all(this.brokers.map(({ server }) => server.management.get<Running[]>('nodes')));
    return views.every(
      (nodes) =>
        nodes.length === this.brokers.length && nodes.every(({ running, partitions }) => running && partitions.length === 0),
    );
  }

  private async isComplete(): Promise<boolean> {
    if (!(await this.knowsItself())) return false;
    const queues = await this.management.get<Queue[]>('queues');
    return queues
      .filter(({ type }) => type === 'quorum')
      .every(
        ({ leader, members, online }) => leader && members?.length === this.brokers.length && online?.length === members.length,
      );
  }
}
