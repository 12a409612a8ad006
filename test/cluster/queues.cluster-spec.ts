import { cpus } from 'node:os';
import { connect, type ChannelModel, type ConfirmChannel } from 'amqplib';
import { report } from '@app/testing/report';
import { PrivateServer } from '@app/testing/system/private-server';
import { BrokerCluster } from './harness/broker-cluster';

const SECONDS = 8;
const ROUNDS = 3;
/** Of messages without a confirm, and of messages without an ack, for each client. */
const WINDOW = 500;
const CLIENTS = 3;
const NODES = 3;
/** A command alone, and a message with as many commands as a gateway puts into one. */
const BODIES = { 'one command': Buffer.alloc(1024, 'x'), '32 commands': Buffer.alloc(32 * 1024, 'x') };

interface Measured {
  perSecond: number;
  /** Share of the processors' time that was used. */
  busy: number;
}

/**
 * How much one queue of commands carries, and whether three with their leaders on three nodes carry more. The publishers choose the queue as a
 * consistent-hash exchange would. Nothing but the broker works here: the services are measured by the benchmark.
 */
describe('quorum queues of commands', () => {
  let single: PrivateServer;
  let cluster: BrokerCluster;
  const channels = new Map<string, Clients>();

  beforeAll(async () => {
    [single, cluster] = await Promise.all([PrivateServer.start('rabbitmq'), BrokerCluster.start()]);
  }, 240_000);
  afterAll(async () => {
    for (const clients of channels.values()) await clients.close();
    await Promise.all([single?.remove(), cluster?.remove()]);
  });

  it.each(Object.entries(BODIES))('with %s in a message', async (name, body) => {
    const systems: Record<string, [string[], number]> = {
      'one node, one queue': [[single.url], 1],
      'three nodes, one queue': [cluster.brokers.map(({ server }) => server.url), 1],
      'three nodes, three queues': [cluster.brokers.map(({ server }) => server.url), NODES],
    };
    const found = new Map<string, Measured[]>();
    for (let round = 0; round < ROUNDS; round++)
      for (const [system, [urls, queues]] of Object.entries(systems)) {
        const clients = channels.get(system) ?? (await Clients.connect(urls, `${queues}`, queues));
        channels.set(system, clients);
        found.set(system, [...(found.get(system) ?? []), await clients.measure(body, SECONDS)]);
      }
    for (const [system, rounds] of found) {
      const of = (pick: (one: Measured) => number) => rounds.map(pick).sort((a, b) => a - b);
      const rates = of(({ perSecond }) => perSecond);
      expect(rates[0]).toBeGreaterThan(0);
      const commands = name === 'one command' ? 1 : 32;
      report({
        row: `${system}, ${name} in a message`,
        'messages a second': `${Math.round(rates[1] ?? 0)} (${Math.round(rates[0] ?? 0)}-${Math.round(rates[2] ?? 0)})`,
        'commands a second': Math.round((rates[1] ?? 0) * commands),
        'processors in use': `${Math.round(100 * (of(({ busy }) => busy)[1] ?? 0))} %`,
      });
    }
  });
});

/** Publishers and consumers, spread over the nodes. */
class Clients {
  private taken = 0;
  private last = 0;

  private constructor(
    private readonly models: ChannelModel[],
    private readonly publishers: ConfirmChannel[],
    private readonly queues: string[],
  ) {}

  static async connect(urls: string[], suffix: string, count: number): Promise<Clients> {
    const models = await Promise.all(Array.from({ length: CLIENTS }, (_, index) => connect(urls[index % urls.length] ?? '')));
    const queues = Array.from({ length: count }, (_, index) => `measured.${suffix}.${index}`);
    const publishers = await Promise.all(models.map((model) => model.createConfirmChannel()));
    // Declared at another node each: that is where its leader is.
    for (const [index, queue] of queues.entries())
      await publishers[index]?.assertQueue(queue, {
        durable: true,
        arguments: { 'x-queue-type': 'quorum', 'x-queue-leader-locator': 'client-local' },
      });
    const clients = new Clients(models, publishers, queues);
    for (const [index, model] of models.entries()) await clients.consume(model, queues[index % queues.length] ?? '');
    return clients;
  }

  private async consume(model: ChannelModel, queue: string): Promise<void> {
    const channel = await model.createChannel();
    await channel.prefetch(WINDOW);
    await channel.consume(queue, (message) => {
      if (!message) return;
      this.taken++;
      channel.ack(message);
    });
  }

  async measure(body: Buffer, seconds: number): Promise<Measured> {
    // The first second fills the queues.
    await this.publish(body, 1);
    const [taken, from, used] = [this.taken, performance.now(), usage()];
    await this.publish(body, seconds);
    const [idle, all] = usage().map((value, index) => value - (used[index] ?? 0));
    return {
      perSecond: (1000 * (this.taken - taken)) / (performance.now() - from),
      busy: 1 - (idle ?? 0) / (all ?? 1),
    };
  }

  private async publish(body: Buffer, seconds: number): Promise<void> {
    const until = performance.now() + seconds * 1000;
    await Promise.all(
      this.publishers.map(async (channel) => {
        while (performance.now() < until) {
          for (let sent = 0; sent < WINDOW; sent++)
            channel.sendToQueue(this.queues[this.last++ % this.queues.length] ?? '', body, { persistent: true });
          await channel.waitForConfirms();
        }
      }),
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.models.map((model) => model.close()));
  }
}

/** Idle and all time of the processors, in milliseconds. */
function usage(): [number, number] {
  const times = cpus().map(({ times: one }) => one);
  const idle = times.reduce((sum, one) => sum + one.idle, 0);
  return [idle, times.reduce((sum, one) => sum + Object.values(one).reduce((a, b) => a + b, 0), 0)];
}
