import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { Registry } from 'prom-client';
import { openConnection } from '@app/amqp/connection/open-connection';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { startUsersStub } from '@app/testing/system/users-stub';
import { declareTopology } from './declare-topology';
import { EARLIER_BINDINGS, EARLIER_QUEUES } from './earlier-topology';
import { finishUpgrade } from './finish-upgrade';
import { FaultProxy } from '../../../../test/faults/harness/fault-proxy';

/** A method frame of queue.declare: the numbers of its class and of the method. */
const DECLARE = Buffer.from([0, 50, 0, 10]);
/** The same of basic.publish. */
const PUBLISH = Buffer.from([0, 60, 0, 40]);

const BODY = Buffer.from(JSON.stringify({ organizationId: 'org', users: [{ userId: 'u' }] }));
/** As versions without lanes declared them. */
const bounded = {
  'x-queue-type': 'quorum',
  'x-max-length': 100_000,
  'x-max-length-bytes': 2 ** 28,
  'x-overflow': 'reject-publish',
};

/** A broker on which versions without lanes ran. */
describe('an upgrade', () => {
  let broker: TestBroker;
  let model: ChannelModel;
  let channel: ConfirmChannel;

  beforeEach(async () => {
    broker = await createTestBroker();
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createConfirmChannel();
    for (const exchange of ['retry', 'dead']) await channel.assertExchange(exchange, 'direct');
    for (const exchange of ['commands', 'events']) await channel.assertExchange(exchange, 'topic');
    for (const service of ['users', 'notifications']) {
      const commands = `${service}.commands`;
      const dead = {
        'x-dead-letter-exchange': 'dead',
        'x-dead-letter-routing-key': commands,
        'x-dead-letter-strategy': 'at-least-once',
      };
      const again = { ...dead, 'x-dead-letter-exchange': 'retry' };
      await channel.assertQueue(commands, { arguments: { ...bounded, ...dead, 'x-delivery-limit': 20 } });
      await channel.assertQueue(`${commands}.suspects`, { arguments: { ...bounded, ...dead, 'x-delivery-limit': 3 } });
      await channel.assertQueue(`${commands}.dead`, { arguments: { ...bounded, 'x-delivery-limit': 1_000_000 } });
      for (const [name, ttl] of Object.entries({ '1s': 1000, '5s': 5000, '30s': 30_000, '5m': 300_000 }))
        await channel.assertQueue(`${commands}.retry.${name}`, { arguments: { ...bounded, ...again, 'x-message-ttl': ttl } });
      await channel.bindQueue(commands, 'retry', commands);
      await channel.bindQueue(commands, 'commands', `${service}.add.v1`);
      await channel.bindQueue(`${commands}.dead`, 'dead', commands);
    }
  });
  afterEach(async () => {
    await model.close();
    await broker.drop();
  });

  const send = async (queue: string) => {
    channel.sendToQueue(queue, BODY, { persistent: true, headers: { 'x-api-key': 'key', 'x-routing-key': 'users.add.v1' } });
    await channel.waitForConfirms();
  };

  /** Queues that commands of lane 0 go to: the one of earlier versions or the one of this version. */
  const laneZero = async () => {
    const { bindings } = await broker.management.definitions();
    const bound = bindings.filter(({ source, routing_key: key }) => source === 'commands' && key === 'users.add.v1');
    return bound.map(({ destination }) => destination);
  };

  it('keeps the queues of earlier processes until it is finished, and loses no message in them', async () => {
    await send('users.commands');
    await send('users.commands.retry.1s');
    await send('users.commands.suspects');
    await send('users.commands.retry.5m');
    expect(await declareTopology(broker.url)).toEqual([]);
    const names = async () => (await broker.management.definitions()).queues.map(({ name }) => name);
    expect(await names()).toEqual(expect.arrayContaining(EARLIER_QUEUES.map(({ name }) => name)));
    expect(await laneZero()).toEqual(['users.commands']);

    const left = () => declareTopology(broker.url, { upgraded: true });
    // The message in the queue of 1 s expires by itself.
    await eventually(async () => (await left()).join() === 'users.commands.retry.5m');
    expect(await names()).not.toContain('users.commands.suspects');
    expect(await laneZero()).toEqual(['users.commands.0']);
    let handled = 0;
    const server = await startUsersStub(
      { connection: { url: broker.url, name: 'users' }, metrics: new Registry() },
      { add: () => void handled++, authenticate: () => ({}), exists: () => ({}) },
    );
    try {
      // The suspect and the retry. The one in the earlier queue has no routing key of its own: it is refused.
      await eventually(() => handled === 2);
      await eventually(async () => (await channel.checkQueue('users.commands.refused')).messageCount === 1);
      await channel.purgeQueue('users.commands.retry.5m');
      expect(await declareTopology(broker.url, { upgraded: true })).toEqual([]);
      expect((await names()).filter((name) => EARLIER_QUEUES.some((earlier) => earlier.name === name))).toEqual([]);
      const { bindings } = await broker.management.definitions();
      for (const { queue, exchange, routingKey } of EARLIER_BINDINGS)
        expect(bindings).not.toContainEqual(
          expect.objectContaining({ source: exchange, destination: queue, routing_key: routingKey }),
        );
    } finally {
      await server.close();
    }
  });

  it('is not finished when the connection is lost while it looks for the last queue', async () => {
    await declareTopology(broker.url, { upgraded: true });
    const proxy = await FaultProxy.to(broker.url);
    const last = EARLIER_QUEUES.at(-1)!.name;
    proxy.inspector = (bytes, direction) =>
      direction === 'toServer' && bytes.includes(DECLARE) && bytes.includes(last) ? 'cut' : 'pass';
    try {
      const lost = await openConnection({ url: proxy.through(broker.url), name: 'test' });
      await expect(finishUpgrade(lost)).rejects.toThrow();
    } finally {
      await proxy.close();
    }
  });

  it('fails, and keeps a suspect, when the queue for it loses its binding meanwhile', async () => {
    await send('users.commands.suspects');
    await declareTopology(broker.url);
    const proxy = await FaultProxy.to(broker.url);
    const upgrading = await openConnection({ url: proxy.through(broker.url), name: 'test' });
    try {
      const published = new Promise<void>((resolve) => {
        proxy.inspector = (bytes, direction) => {
          if (direction !== 'toServer' || !bytes.includes(PUBLISH)) return 'pass';
          resolve();
          return 'hold';
        };
      });
      const failed = expect(finishUpgrade(upgrading)).rejects.toThrow('users.suspects');
      await published;
      await channel.unbindQueue('users.suspects', 'retry', 'users.suspects');
      proxy.heal();
      await failed;
    } finally {
      await upgrading.close();
      await proxy.close();
    }
    await eventually(async () => (await channel.checkQueue('users.commands.suspects')).messageCount === 1);
  });

  it('lets the earlier queue dead-letter where nothing is refused', async () => {
    await declareTopology(broker.url);
    const { bindings } = await broker.management.definitions();
    const targets = bindings.filter(({ source, routing_key: key }) => source === 'dead' && key === 'users.commands');
    expect(targets.map(({ destination }) => destination)).toEqual(['users.commands.refused']);
  });
});
