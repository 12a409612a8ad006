import type { Channel, ConfirmChannel, Message } from 'amqplib';
import { Registry } from 'prom-client';
import { openOwnQueue } from '@app/amqp/connection/own-queue';
import { createDeclaredBroker, type DeclaredBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { metricValue } from '@app/testing/metric-value';
import { patternsOf } from '../src/server/handler-check';
import { RabbitServer } from '../src/server/rabbit.server';
import type { ConsumedQueue } from '../src/topology/consumed-queues';
import { againQueue, callQueue, commandQueue, eventQueue, suspectQueue } from '../src/topology/topology';

/** Of a consumer: its channel, and the tag while it consumes. */
interface Consuming {
  acks: { channel: Channel };
  tag?: string;
}

/** The broker ends a channel whose delivery is not settled in half an hour, and delivers again. That counts towards the limit of a queue. */
describe('a long outage of the database', () => {
  let broker: DeclaredBroker;
  let channel: ConfirmChannel;
  let server: RabbitServer;
  let metrics: Registry;
  let isAway: boolean;
  let handled: number;
  let begun: number;
  /** Handlers wait for it. */
  let handlersMayGoOn: Promise<void>;

  beforeAll(async () => {
    broker = await createDeclaredBroker();
    ({ channel } = broker);
  });
  beforeEach(() => start());
  afterEach(() => server.close());
  afterAll(async () => {
    await broker.drop();
  });

  async function start(crashPauseMs = 0) {
    [isAway, handled, begun, handlersMayGoOn, metrics] = [true, 0, 0, Promise.resolve(), new Registry()];
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
      crashPauseMs,
    });
    for (const pattern of patternsOf('notifications'))
      server.addHandler(pattern, async () => {
        begun++;
        await handlersMayGoOn;
        await answer();
        handled++;
      });
    server.listen(() => undefined);
    await eventually(() => server.check() === undefined);
  }

  const publish = async (exchange: string, routingKey: string, headers: object = {}, replyTo?: string, body = '{}') => {
    const options = { persistent: true, headers: { 'x-api-key': 'key', ...headers }, replyTo };
    channel.publish(exchange, routingKey, Buffer.from(body), options);
    await channel.waitForConfirms();
  };
  const consumerOf = (queue: string) => {
    const { consumers } = server as unknown as { consumers: Map<ConsumedQueue, { consuming: Consuming }> };
    return [...consumers].find(([{ name }]) => name === queue)![1];
  };
  /** An unknown delivery tag makes the broker close the channel. */
  const endChannel = (queue: string) => consumerOf(queue).consuming.acks.channel.ack({ fields: { deliveryTag: 999 } } as never);
  const inFlight = (queue: string) => metricValue(metrics, 'rabbitmq_deliveries_in_flight', { queue });
  const redeliveries = (queue: string) => metricValue(metrics, 'rabbitmq_redeliveries_total', { queue });
  const publishSuspect = () => publish('retry', suspectQueue('notifications'), { 'x-routing-key': 'notifications.add.v1' });

  it.each([
    ['is handled', 1, async () => publishSuspect()],
    [
      'waits for another command',
      2,
      async () => {
        const { open, opened } = gate();
        handlersMayGoOn = opened;
        await publish('commands', 'notifications.add.v1');
        await eventually(() => begun === 1);
        await publishSuspect();
        await eventually(async () => (await channel.checkQueue(callQueue('notifications'))).consumerCount === 0);
        open();
      },
    ],
  ])('others are answered when it begins while a suspect %s', async (_, commands, begin) => {
    const replies: Message[] = [];
    const replyTo = await openOwnQueue(channel, { exchange: 'replies' }, (reply) => replies.push(reply));
    await begin();
    await eventually(() => server.check() === 'the database is away');
    await publish('calls', 'notifications.add.v1', { 'x-deadline': Date.now() + 60_000 }, replyTo);
    await eventually(() => replies.length === 1, 10_000);
    expect(replies[0].properties.headers).toEqual({ 'x-status': 'UNAVAILABLE' });
    expect(handled).toBe(0);
    isAway = false;
    await eventually(() => handled === commands);
  });

  it('an event that was delivered again stays in its queue', async () => {
    const queue = eventQueue('notifications');
    const ready = async () => (await channel.checkQueue(queue)).messageCount;
    await publish('events.own', 'user.added.v1');
    await eventually(() => server.check() === 'the database is away');
    endChannel(queue);
    await eventually(async () => (await redeliveries(queue)) === 1 && consumerOf(queue).consuming.tag === undefined);
    endChannel(queue);
    await eventually(async () => (await ready()) === 1);
    isAway = false;
    await eventually(() => handled === 1);
    expect(await ready()).toBe(0);
  });

  it('a suspect that was delivered again waits among the retried commands, where that counts no more', async () => {
    const again = againQueue('notifications');
    await publishSuspect();
    await eventually(() => server.check() === 'the database is away');
    endChannel(suspectQueue('notifications'));
    await eventually(async () => (await inFlight(again)) === 1);
    for (let lost = 1; lost <= 4; lost++) {
      endChannel(again);
      await eventually(async () => (await redeliveries(again)) === lost);
    }
    isAway = false;
    await eventually(() => handled === 1);
  });

  describe('keeps the deliveries of one channel', () => {
    const QUEUE = commandQueue('notifications', 1);
    const MANY = 10;
    const LOST = 3;
    /** Two of them are at work at a time. */
    const HEAVY = JSON.stringify('x'.repeat(64 * 1024));

    const loseChannels = async (redelivered = 0) => {
      await eventually(async () => (await inFlight(QUEUE)) === MANY);
      for (let lost = 1; lost <= LOST; lost++) {
        endChannel(QUEUE);
        await eventually(async () => (await redeliveries(QUEUE)) === redelivered + lost * MANY);
        expect(await inFlight(QUEUE)).toBe(MANY);
      }
    };

    it.each([
      ['have begun', '{}'],
      ['wait for their turn behind those of another channel', HEAVY],
    ])('when others are lost whose commands %s', async (_, body) => {
      const others = commandQueue('notifications', 0);
      for (let other = 0; other < 2; other++) await publish('commands', 'notifications.add.v1', {}, undefined, body);
      await eventually(() => server.check() === 'the database is away');
      for (let one = 0; one < MANY; one++) await publish('commands.1', 'notifications.add.v1', {}, undefined, body);
      await loseChannels();
      expect(await inFlight(others)).toBe(2);
      isAway = false;
      await eventually(() => handled === MANY + 2);
      await eventually(async () => (await inFlight(QUEUE)) === 0);
    });

    it('when others are lost whose commands wait for a process that has ended', async () => {
      await server.close();
      for (let one = 0; one < MANY; one++) await publish('commands.1', 'notifications.add.v1');
      const victim = await broker.model.createChannel();
      let delivered = 0;
      await victim.consume(QUEUE, () => delivered++);
      await eventually(() => delivered === MANY);
      await victim.close();
      await start(60_000);
      await loseChannels(MANY);
      await server.close();
      await channel.purgeQueue(QUEUE);
    });
  });
});
