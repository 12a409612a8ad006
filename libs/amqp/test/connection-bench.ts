import type { Channel } from 'amqplib';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { BrokerLinks } from '@app/testing/broker/broker-links';
import { RabbitChannel, type ChannelOptions } from '../src/connection/channel';
import { RabbitConnection } from '../src/connection/connection';
import { silent } from '../src/connection/observer';

/** Connections, each as of another process, to a broker that seems to have three nodes. */
export class ConnectionBench {
  private connections: RabbitConnection[] = [];
  lines: string[] = [];
  connectedAt: number[] = [];
  /** Failed rounds of all connections. */
  rounds = 0;

  private constructor(
    readonly broker: TestBroker,
    readonly links: BrokerLinks,
  ) {}

  static async start(): Promise<ConnectionBench> {
    const broker = await createTestBroker();
    return new ConnectionBench(broker, await BrokerLinks.to(broker.url, 3));
  }

  /** Ends what a test has begun. */
  async reset(): Promise<void> {
    this.links.heal();
    await Promise.all(this.connections.map((connection) => connection.close()));
    const password = decodeURIComponent(new URL(this.broker.url).password);
    expect(this.lines.join('\n')).not.toContain(password);
    Object.assign(this, { connections: [], lines: [], connectedAt: [], rounds: 0 });
  }

  async stop(): Promise<void> {
    await this.links.close();
    await this.broker.drop();
  }

  connectionTo(url: string, moveEveryMs?: number, preference = this.connections.length): RabbitConnection {
    const connection = new RabbitConnection(
      { url, name: 'test', moveEveryMs, preference },
      {
        ...silent,
        log: (level: string, fields: object) => void this.lines.push(JSON.stringify({ level, ...fields })),
        connected: (_name: string, _address: string, up: boolean) => void (up && this.connectedAt.push(performance.now())),
        reconnecting: () => void this.rounds++,
      },
    );
    this.connections.push(connection);
    connection.start();
    return connection;
  }

  channelOf(connection: RabbitConnection, options: Partial<ChannelOptions<Channel>> = {}): RabbitChannel<Channel> {
    return new RabbitChannel<Channel>(connection, {
      name: 'test',
      open: (model) => model.createChannel(),
      setup: async () => undefined,
      ...options,
    });
  }

  /** A connection with a usable channel, and its node. */
  async opened(options: Partial<ChannelOptions<Channel>> = {}, moveEveryMs?: number, preference?: number) {
    const connection = this.connectionTo(this.links.url, moveEveryMs, preference);
    const channel = this.channelOf(connection, options);
    expect(await channel.whenReady(20_000)).toBe(true);
    return { connection, channel, node: this.links.nodeOf(connection) };
  }
}
