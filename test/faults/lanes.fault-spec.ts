import { randomUUID } from 'node:crypto';
import { connect, type ChannelModel, type ConfirmChannel, type ConsumeMessage } from 'amqplib';
import { AddNotification } from '@app/contracts/notifications.add';
import { NotificationAdded } from '@app/contracts/events.notifications';
import { commandQueue, LANE_NUMBERS, LANES, type Lane } from '@app/rabbitmq/topology/topology';
import { eventually } from '@app/testing/eventually';
import { report } from '@app/testing/report';
import { Cluster } from './harness/cluster';
import { Random, seedOfRun } from './harness/random';

/** As many as a lane holds. */
const COMMANDS = 50_000;
const PORTION = 1000;
const BACKLOG: Lane = 1;
const OTHERS = LANE_NUMBERS.filter((lane) => lane !== BACKLOG);
const STORED_WITHIN_MS = 2000;

describe('lanes', () => {
  let cluster: Cluster;
  let model: ChannelModel;
  let channel: ConfirmChannel;

  beforeAll(async () => {
    cluster = await Cluster.start(new Random(seedOfRun()), { gateways: 0, writers: 1, started: false });
    await cluster.users.process.start();
    model = await connect(cluster.broker.url);
    channel = await model.createConfirmChannel();
  }, 180_000);
  afterAll(async () => {
    await model?.close();
    await cluster?.remove();
  }, 60_000);

  const publish = (lane: Lane, messageId: string): Promise<void> => {
    const body = {
      organizationId: 'org',
      documentId: `lane ${lane}`,
      actionUser: { userId: 'somebody' },
      displayHeadlineMessageTemplate: 'Something happened.',
    };
    const headers = { 'x-api-key': cluster.tenants[1]['x-svc-api-key'] };
    return new Promise((resolve, reject) =>
      channel.publish(
        LANES[lane],
        AddNotification.pattern,
        Buffer.from(JSON.stringify(body)),
        { persistent: true, messageId, headers },
        (error) => (error ? reject(error as Error) : resolve()),
      ),
    );
  };

  const waiting = async () => (await channel.checkQueue(commandQueue('notifications', BACKLOG))).messageCount;

  it(`store a command within ${STORED_WITHIN_MS / 1000} s while ${COMMANDS} of another lane wait`, async () => {
    for (let published = 0; published < COMMANDS; published += PORTION)
      await Promise.all(Array.from({ length: PORTION }, () => publish(BACKLOG, randomUUID())));
    expect(await waiting()).toBe(COMMANDS);
    await cluster.writers[0].process.start();
    await eventually(async () => (await waiting()) < COMMANDS - PORTION);

    const ids = OTHERS.map(() => randomUUID());
    const heard = new Map<string, number>();
    const listener = await model.createChannel();
    const { queue } = await listener.assertQueue('', { exclusive: true });
    await listener.bindQueue(queue, 'events', NotificationAdded.type);
    const onEvent = (message: ConsumeMessage | null) => {
      const id = ids.find((one) => message?.content.includes(one));
      if (id) heard.set(id, performance.now());
    };
    await listener.consume(queue, onEvent, { noAck: true });
    const from = performance.now();
    await Promise.all(OTHERS.map((lane, index) => publish(lane, ids[index])));
    await eventually(() => heard.size === ids.length, 60_000, 10);
    const left = await waiting();
    const ms = Math.max(...heard.values()) - from;
    report({
      fault: `${COMMANDS} commands in a lane, and one in each other lane`,
      figures: `the others stored within ${ms.toFixed()} ms, with ${left} still waiting`,
    });
    expect(left).toBeGreaterThan(COMMANDS / 2);
    expect(ms).toBeLessThan(STORED_WITHIN_MS);
  }, 180_000);
});
