import { RabbitConnection } from '@app/amqp/connection/connection';
import { silent } from '@app/amqp/connection/observer';
import { openConnection } from '@app/amqp/connection/open-connection';
import { within } from '@app/runtime/within';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { BrokerLinks } from '@app/testing/broker/broker-links';
import { eventually } from '@app/testing/eventually';
import { QueueConsumer } from './queue-consumer';

/** A method frame of queue.declare, which is also the check of a queue: the numbers of its class and of the method. */
const QUEUE_DECLARE = Buffer.from([0, 50, 0, 10]);

describe('the consumer of a queue on one node', () => {
  let broker: TestBroker;
  let links: BrokerLinks;
  let connection: RabbitConnection;

  beforeAll(async () => {
    broker = await createTestBroker();
    links = await BrokerLinks.to(broker.url, 1);
    const { url } = links;
    connection = new RabbitConnection({ url, name: 'test' }, silent);
    connection.start();
    await eventually(() => connection.state === 'up');
    const channel = await connection.current!.createChannel();
    await channel.assertQueue('on one node');
    await channel.close();
  });
  afterAll(async () => {
    await connection?.close();
    await links?.close();
    await broker?.drop();
  });

  it('counts the node as away when the broker does not answer, and waits for its answer on the same channel', async () => {
    const [node] = links.proxies;
    let checks = 0;
    // RabbitMQ 4.0 answers only after 70 s when the node is away.
    node.inspector = (bytes, direction) => {
      if (direction === 'toClient' || !bytes.includes(QUEUE_DECLARE)) return 'pass';
      checks++;
      return 'hold';
    };
    const away: boolean[] = [];
    const consumer = new QueueConsumer(connection, {
      queue: 'on one node',
      prefetch: 1,
      needs: [],
      onNodeAway: (isAway) => away.push(isAway),
      onDelivery: () => undefined,
    });
    await eventually(() => away.length > 0);
    expect([away, consumer.check(), checks]).toEqual([[true], undefined, 1]);
    node.heal();
    await eventually(() => away.length > 1);
    expect([away, checks]).toEqual([[true, false], 1]);
    await eventually(() => consumer.check() === undefined);
    await consumer.close();
  });
});

describe('the consumer of a queue that moves to another node', () => {
  const QUEUE = 'moving';
  /** Far less than it waits for deliveries at work. */
  const AT_ONCE_MS = 20_000;
  let broker: TestBroker;
  let links: BrokerLinks;
  let connection: RabbitConnection;

  beforeAll(async () => {
    broker = await createTestBroker();
    links = await BrokerLinks.to(broker.url, 2);
  });
  afterEach(() => connection?.close());
  afterAll(async () => {
    await links?.close();
    await broker?.drop();
  });

  it.each([
    [false, 'does not wait for a delivery at work'],
    [true, 'waits for the one delivery that its process may have'],
  ])('alone: %s. It %s', async (alone) => {
    connection = new RabbitConnection({ url: links.url, name: 'test', moveEveryMs: 100, preference: 0 }, silent);
    connection.start();
    await eventually(() => connection.state === 'up');
    const declaring = await connection.current!.createChannel();
    await declaring.assertQueue(QUEUE);
    // The ack of the last test may have been lost with its connection.
    await declaring.purgeQueue(QUEUE);
    let finish: (() => void) | undefined;
    const consumer = new QueueConsumer(connection, {
      queue: QUEUE,
      prefetch: 1,
      alone,
      needs: [],
      onDelivery: (message, acks) => (finish = () => acks.ack(message)),
    });
    await eventually(() => consumer.check() === undefined);
    const node = links.nodeOf(connection);
    links.kill(node);
    await eventually(() => connection.state === 'up' && links.nodeOf(connection) !== node && consumer.check() === undefined);
    const sending = await connection.current!.createChannel();
    sending.sendToQueue(QUEUE, Buffer.from('at work'));
    await eventually(() => finish !== undefined);
    links.heal();
    await eventually(() => links.nodeOf(connection) === node);
    let isStopped = false;
    const stopped = consumer.pause('suspect').then(() => (isStopped = true));
    if (alone) {
      // Over the connection that it has moved to.
      await (await connection.current!.createChannel()).checkQueue(QUEUE);
      expect(isStopped).toBe(false);
      finish!();
    }
    expect(await within(AT_ONCE_MS, stopped)).toBe(true);
    finish!();
    await consumer.close();
  });

  it('is one also when its channel is lost while the next connection is prepared', async () => {
    connection = new RabbitConnection({ url: broker.url, name: 'test' }, silent);
    connection.start();
    const other = await openConnection({ url: broker.url, name: 'test' });
    const declaring = await other.createChannel();
    await declaring.assertQueue(QUEUE);
    const consumer = new QueueConsumer(connection, { queue: QUEUE, prefetch: 1, needs: [], onDelivery: () => undefined });
    await eventually(() => consumer.check() === undefined);
    await declaring.deleteQueue(QUEUE);
    // Now it waits before it opens the next channel.
    await eventually(() => consumer.check()?.includes('does not exist'));
    await declaring.assertQueue(QUEUE);
    const [channel] = connection.channels;
    const next = await channel.prepare(other, 'the next node');
    const consumers = async () => (await declaring.checkQueue(QUEUE)).consumerCount;
    await eventually(() => consumer.check() === undefined);
    expect(await consumers()).toBe(1);
    await next.takeOver();
    expect(consumer.check()).toBeUndefined();
    expect(await consumers()).toBe(1);
    await consumer.close();
    await other.close();
  });
});
