import type { Channel, ChannelModel, ConfirmChannel } from 'amqplib';
import { Registry } from 'prom-client';
import { openConnection } from '@app/amqp/connection/open-connection';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { patternsOf } from '../src/server/handler-check';
import { RabbitServer } from '../src/server/rabbit.server';
import type { ConsumedQueue } from '../src/topology/consumed-queues';
import { declareTopology } from '../src/topology/declare-topology';
import { eventQueue, suspectQueue } from '../src/topology/topology';

/** Of a consumer: its channel, and the tag while it consumes. */
interface Consuming {
  acks: { channel: Channel };
  tag?: string;
}

/** The broker ends a channel whose delivery is not settled in half an hour, and delivers again. That counts towards the limit of a queue. */
describe('a long outage of the database', () => {
  let broker: TestBroker;
  let model: ChannelModel;
  let channel: ConfirmChannel;
  let server: RabbitServer;
  let metrics: Registry;
  let isAway: boolean;
  let handled: number;

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createConfirmChannel();
  });
  beforeEach(async () => {
    [isAway, handled, metrics] = [true, 0, new Registry()];
    const answer = async () => {
      if (isAway) throw new Error('away');
    };
    server = new RabbitServer({
      service: 'notifications',
      connection: { url: broker.url, name: 'notifications' },
      queues: ['commands', 'queries', 'events'],
      prefetch: { commands: 50, queries: 50 },
      metrics,
      isUnavailable: () => true,
      probe: answer,
      drainTimeoutMs: 200,
      crashPauseMs: 0,
    });
    for (const pattern of patternsOf('notifications')) server.addHandler(pattern, () => answer().then(() => handled++));
    server.listen(() => undefined);
    await eventually(() => server.check() === undefined);
  });
  afterEach(() => server.close());
  afterAll(async () => {
    await model.close();
    await broker.drop();
  });

  it.each([
    ['events.own', 'user.added.v1', eventQueue('notifications'), {}],
    ['retry', suspectQueue('notifications'), suspectQueue('notifications'), { 'x-routing-key': 'notifications.add.v1' }],
  ])('%s: what was delivered again stays in its queue %s', async (exchange, routingKey, queue, headers) => {
    const { consumers } = server as unknown as { consumers: Map<ConsumedQueue, { consuming: Consuming }> };
    const [, consumer] = [...consumers].find(([{ name }]) => name === queue)!;
    // An unknown delivery tag makes the broker close the channel.
    const endChannel = () => consumer.consuming.acks.channel.ack({ fields: { deliveryTag: 999 } } as never);
    const redeliveries = async () => {
      const { values } = await metrics.getSingleMetric('rabbitmq_redeliveries_total')!.get();
      return values.find(({ labels }) => labels.queue === queue)?.value;
    };
    const ready = async () => (await channel.checkQueue(queue)).messageCount;

    const message = Buffer.from('{}');
    channel.publish(exchange, routingKey, message, { persistent: true, headers: { 'x-api-key': 'key', ...headers } });
    await channel.waitForConfirms();
    await eventually(() => server.check() === 'the database is away');
    endChannel();
    await eventually(async () => (await redeliveries()) === 1 && consumer.consuming.tag === undefined);
    endChannel();
    await eventually(async () => (await ready()) === 1);
    isAway = false;
    await eventually(() => handled === 1);
    expect(await ready()).toBe(0);
  });
});
