import type { Channel, ChannelModel } from 'amqplib';
import { Registry } from 'prom-client';
import { RabbitConnection } from '@app/amqp/connection/connection';
import { silent } from '@app/amqp/connection/observer';
import { destroySocket, openConnection } from '@app/amqp/connection/open-connection';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { TransportMetrics } from '../metrics';
import { declareTopology } from '../topology/declare-topology';
import { callQueryQueue, LANE_NUMBERS, QUEUES, queryQueue, refusedQueue } from '../topology/topology';
import { QueueLengths } from './queue-lengths';

/** The queues that are on one broker node. */
const ON_ONE_NODE = [callQueryQueue('users'), ...LANE_NUMBERS.map((lane) => queryQueue('users', lane))];
const REFUSED = refusedQueue('users');
/** Less than a queue is left alone. */
const SOON_MS = 20_000;
const OWN = QUEUES.map(({ name }) => name).filter((name) => name.startsWith('users.'));

describe('the lengths of queues, while the queues on one node give no answer', () => {
  let broker: PrivateServer;
  let model: ChannelModel;
  let channel: Channel;
  let connection: RabbitConnection;
  let metrics: TransportMetrics;
  let messages: number;

  beforeAll(async () => {
    broker = await PrivateServer.start('rabbitmq');
    await declareTopology(broker.url);
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createChannel();
    connection = new RabbitConnection({ url: broker.url, name: 'users' }, silent);
    connection.start();
    await eventually(() => connection.state === 'up');
  });
  beforeEach(async () => {
    metrics = TransportMetrics.of(new Registry());
    ({ messageCount: messages } = await channel.checkQueue(REFUSED));
  });
  afterEach(() => broker.queues('resume', ...ON_ONE_NODE));
  afterAll(async () => {
    await connection?.close();
    await model?.close();
    await broker?.remove();
  });

  /** The figures of all queues that have one. */
  const figures = async () => {
    const { values } = await metrics.queueMessages.get();
    return Object.fromEntries(values.map(({ labels: { queue = '' }, value }) => [queue, value]));
  };
  /** After the first look, and one more message. */
  const changed = async (lookMs?: number) => {
    const lengths = new QueueLengths(connection, 'users', metrics, lookMs);
    await eventually(async () => {
      await lengths.look();
      return Object.keys(await figures()).length === OWN.length;
    });
    // As on RabbitMQ 4.0 while their node is away.
    await broker.queues('suspend', ...ON_ONE_NODE);
    channel.sendToQueue(REFUSED, Buffer.from('{}'));
    await eventually(async () => (await channel.checkQueue(REFUSED)).messageCount === messages + 1);
    return lengths;
  };

  it('are those of now for all other queues', async () => {
    const lengths = await changed(60_000);
    void lengths.look();
    await eventually(async () => (await figures())[REFUSED] === messages + 1);
  });

  it('are not given for a queue that is away', async () => {
    // Long enough for the answers of all other queues: one without an answer is left alone for a minute.
    const lengths = await changed(3000);
    const given = await eventually(async () => {
      await lengths.look();
      const found = await figures();
      return ON_ONE_NODE.some((queue) => queue in found) ? undefined : found;
    });
    expect(Object.keys(given ?? {}).sort()).toEqual(OWN.filter((queue) => !ON_ONE_NODE.includes(queue)).sort());
    expect(given?.[REFUSED]).toBe(messages + 1);
  });

  it('are given again at once after a lost connection', async () => {
    const lengths = await changed(60_000);
    await lengths.look();
    destroySocket(connection.current!);
    await broker.queues('resume', ...ON_ONE_NODE);
    await eventually(async () => {
      await lengths.look();
      return Object.keys(await figures()).length === OWN.length;
    }, SOON_MS);
  });
});
