import { once } from 'node:events';
import type { Channel, ChannelModel } from 'amqplib';
import { Registry } from 'prom-client';
import type { RabbitConnection } from '@app/amqp/connection/connection';
import { openConnection } from '@app/amqp/connection/open-connection';
import { within } from '@app/runtime/within';
import { AddUsers } from '@app/contracts/users.add';
import { Authenticate } from '@app/contracts/users.authenticate';
import { Exists } from '@app/contracts/users.exists';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { metricValue } from '@app/testing/metric-value';
import { PrivateServer } from '@app/testing/system/private-server';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import { declareTopology } from '../src/topology/declare-topology';
import { callQueryQueue } from '../src/topology/topology';

const QUEUE = callQueryQueue('users');
/** Queries that are handled at a time while the size of their answers is unknown: one that finds it out, and two that may be large. */
const AT_ONCE = 3;
const SHORT = 'the broker is short of memory or disk';
const CALL = { apiKey: 'key', requestId: 'r', timeoutMs: 8000 };

/** The view of a caller when the broker node of the query queue is away, or its connection ends. */
describe('queries', () => {
  let broker: PrivateServer;
  let model: ChannelModel;
  let channel: Channel;
  let client: RabbitClient;
  let server: RabbitServer;
  const handlers = {} as UsersHandlers;
  const metrics = new Registry();

  const exists = () => client.call(Exists, {}, CALL).then((answer) => answer.parse());
  const repetitions = (reason: string) => metricValue(metrics, 'rabbitmq_queries_repeated_total', { reason });
  const waiting = async (queue: string) => (await channel.checkQueue(queue)).messageCount;

  beforeAll(async () => {
    broker = await PrivateServer.start('rabbitmq', '--management');
    await declareTopology(broker.url);
    server = await startUsersStub({ connection: { url: broker.url, name: 'users' }, metrics }, handlers);
  });
  beforeEach(async () => {
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createChannel();
    // A new client each time, because a client remembers for 5 s that a queue is away.
    client = new RabbitClient({ connection: { url: broker.url, name: 'gateway' }, metrics });
    await client.connect();
    handlers.exists = () => ({ fine: true });
    await eventually(() => client.check() === undefined && server.check() === undefined);
  });
  afterEach(async () => {
    await client.close();
    await model.close().catch(() => undefined);
    // Another connection: that of the test is given up when a busy machine is silent for 8 s.
    const last = await openConnection({ url: broker.url, name: 'test' });
    await (await last.createChannel()).bindQueue(QUEUE, 'calls', Exists.pattern);
    await last.close();
  });
  afterAll(async () => {
    await server?.close();
    await broker?.remove();
  });

  // First, because the service does not know yet how large its answers are.
  it('keep their places while the broker takes no answers, because these would fill the memory', async () => {
    const page = 'x'.repeat(4 * 1024 * 1024);
    let started = 0;
    const { open: letGo, opened } = gate();
    handlers.exists = async () => {
      started++;
      await opened;
      return { page };
    };
    const answers = Array.from({ length: 40 }, () => client.call(Exists, {}, { ...CALL, timeoutMs: 40_000 }));
    const askedAt = performance.now();
    await eventually(() => started === AT_ONCE);
    // A copy that the blocked broker does not confirm would end the calls: the last one is published after 2.8 s.
    await eventually(() => performance.now() > askedAt + 3500);
    await broker.order('memory alarm on');
    // The broker blocks a connection when it publishes.
    await eventually(async () => {
      await client.call(Exists, {}, { ...CALL, timeoutMs: 100 }).catch(() => undefined);
      return client.check() === SHORT;
    });
    letGo();
    await eventually(() => server.check() === SHORT);
    // Calls whose answers fill the buffers of the socket, and calls that wait for it.
    expect(started).toBeLessThan(20);
    await broker.order('memory alarm off');
    for (const answer of await Promise.all(answers)) expect(answer.parse()).toEqual({ page });
  });

  it('go to the standby queue when no other queue takes them', async () => {
    await channel.unbindQueue(QUEUE, 'calls', Exists.pattern);
    await expect(exists()).resolves.toEqual({ fine: true });
    await expect(exists()).resolves.toEqual({ fine: true });
    expect(await repetitions('away')).toBe(2);
  });

  it('are asked again when their queue has taken them and nothing comes of it', async () => {
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, 'calls', Exists.pattern);
    await channel.unbindQueue(QUEUE, 'calls', Exists.pattern);
    const before = await repetitions('unanswered');
    await expect(exists()).resolves.toEqual({ fine: true });
    expect(await waiting(queue)).toBe(1);
    // More than once on a busy machine.
    expect(await repetitions('unanswered')).toBeGreaterThan(before);
    await channel.deleteQueue(queue);
  });

  it('are all asked again when one of them finds that the queue is gone', async () => {
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, 'calls', Exists.pattern);
    await channel.unbindQueue(QUEUE, 'calls', Exists.pattern);
    const lost = Array.from({ length: 30 }, exists);
    await eventually(async () => (await waiting(queue)) === 30);
    await channel.deleteQueue(queue);
    await expect(exists()).resolves.toEqual({ fine: true });
    await expect(Promise.all(lost)).resolves.toEqual(Array.from({ length: 30 }, () => ({ fine: true })));
  });

  /** Resolves in the event itself, because the connection may be back before a test can look. */
  const lost = () => once((client as unknown as { connection: RabbitConnection }).connection, 'state');

  it('are asked again on the next connection when theirs is lost', async () => {
    let [runs, isLost] = [0, false];
    // Before, a query that is asked again because it is slow gets no answer either.
    handlers.exists = () => (++runs, isLost ? { fine: true } : new Promise(() => undefined));
    const call = exists();
    await eventually(() => runs > 0);
    void lost().then(() => (isLost = true));
    await eventually(() => broker.management.killConnections('gateway calling'));
    await expect(call).resolves.toEqual({ fine: true });
  });

  it('wait for the next connection when they come while there is none', async () => {
    // The channel ends in the same iteration as its connection.
    const call = lost().then(async () => {
      await new Promise(setImmediate);
      return [client.state, exists()] as const;
    });
    await eventually(() => broker.management.killConnections('gateway calling'));
    const [state, answer] = await call;
    expect(state).toBe('down');
    await expect(answer).resolves.toEqual({ fine: true });
  });

  it('wait for a channel whose first messages are taken, and not for a queue that stays full', async () => {
    const { queue } = await channel.assertQueue('', {
      exclusive: true,
      arguments: { 'x-max-length': 0, 'x-overflow': 'reject-publish' },
    });
    await channel.bindQueue(queue, 'calls', AddUsers.pattern);
    const expired = () => metricValue(metrics, 'rabbitmq_deliveries_total', { pattern: AddUsers.pattern, outcome: 'expired' });
    const calls = { as: 'gateway', messages: [AddUsers, Authenticate] } as const;
    const other = new RabbitClient({ connection: { url: broker.url, name: 'other' }, calls, metrics });
    try {
      await other.connect();
      await eventually(() => other.check()?.startsWith('a queue refuses messages'));
      await eventually(() => other.check() === undefined);
      // The first message of each channel has reached the service, and has no effect.
      await eventually(async () => (await expired()) === 31);
    } finally {
      await other.close();
      await channel.deleteQueue(queue);
    }
  });

  it('are refused 1 s after the broker went away, and from then on at once', async () => {
    let runs = 0;
    handlers.exists = () => (++runs, new Promise(() => undefined));
    const timeoutMs = 20_000;
    const call = client.call(Exists, {}, { ...CALL, timeoutMs }).catch((error: unknown) => ({ error, at: performance.now() }));
    await eventually(() => runs > 0);
    const killedAt = performance.now();
    await broker.order('kill');
    const { error, at } = (await call) as { error: unknown; at: number };
    expect(error).toMatchObject({ status: 'UNAVAILABLE' });
    // Long before its deadline.
    expect(at - killedAt).toBeLessThan(timeoutMs / 2);
    const refused = expect(exists()).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    // It waits for nothing outside of the process, so a busy machine delays both.
    expect(await within(500, refused)).toBe(true);
    await refused;
    await broker.order('start');
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createChannel();
  });
});
