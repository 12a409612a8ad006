import type { ConfirmChannel, Options } from 'amqplib';
import { Registry } from 'prom-client';
import { ApiError } from '@app/contracts/error';
import { AddUsers, type AddUsersRequest } from '@app/contracts/users.add';
import { createDeclaredBroker, type DeclaredBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { metricValue } from '@app/testing/metric-value';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import { LANES } from '../src/topology/topology';

const BACKLOG = 5000;
const MISTAKES = 1000;
const CALL = { apiKey: 'key', requestId: 'r', timeoutMs: 20_000 };
const body = (organizationId: string): AddUsersRequest => ({ organizationId, users: [{ userId: 'u' }] });

/** Several publishers of one service: none of them waits for the backlog of another. */
describe('lanes', () => {
  let broker: DeclaredBroker;
  let channel: ConfirmChannel;
  let client: RabbitClient;
  let server: RabbitServer;
  let metrics: Registry;
  const handlers = {} as UsersHandlers;

  beforeEach(async () => {
    broker = await createDeclaredBroker();
    ({ channel } = broker);
    metrics = new Registry();
    handlers.add = handlers.authenticate = handlers.exists = () => ({});
    client = new RabbitClient({ connection: { url: broker.url, name: 'gateway' }, metrics });
    await client.connect();
    server = await startUsersStub(
      { connection: { url: broker.url, name: 'users' }, metrics, prefetch: { commands: 20, queries: 20 } },
      handlers,
    );
    await eventually(() => server.check() === undefined && client.check() === undefined);
  });
  afterEach(async () => {
    await client.close();
    await server.close();
    await broker.drop();
  });

  const publish = (lane: string, organizationId: string, options: Options.Publish = {}) =>
    channel.publish(lane, 'users.add.v1', Buffer.from(JSON.stringify(body(organizationId))), {
      persistent: true,
      headers: { 'x-api-key': 'key' },
      ...options,
    });
  const deliveries = (outcome: string) => metricValue(metrics, 'rabbitmq_deliveries_total', { outcome });

  it('do not wait for each other, and calls do not wait for lanes', async () => {
    let ended = 0;
    const endedBefore = new Map<string, number>();
    const { open: begin, opened: begun } = gate();
    handlers.add = async ({ organizationId }) => {
      // Otherwise the backlog could be over before the others are published.
      if (organizationId === 'backlog') await begun;
      // Takes a turn of the event loop, as a database query does.
      await new Promise((resolve) => setImmediate(resolve));
      ended++;
      if (organizationId !== 'backlog') endedBefore.set(organizationId, ended);
      return {};
    };
    for (let number = 0; number < BACKLOG; number++) publish('commands.1', 'backlog');
    await channel.waitForConfirms();
    publish('commands.2', 'neighbour');
    await channel.waitForConfirms();
    const call = client.call(AddUsers, body('call'), CALL);
    begin();
    await call;
    await eventually(() => ended === BACKLOG + 2);
    // The backlog was published first. Only a small part of it is prefetched and takes turns. Behind it they would end with its last part.
    expect(Math.max(...endedBefore.values())).toBeLessThan(BACKLOG / 2);
  });

  it('all execute their commands', async () => {
    const seen: string[] = [];
    handlers.add = ({ organizationId }) => seen.push(organizationId);
    for (const lane of LANES) publish(lane, lane);
    await eventually(() => seen.length === LANES.length);
    expect(seen.toSorted()).toEqual([...LANES]);
  });

  it('have one process for the few commands of a moment, and another one when it has ended', async () => {
    const seen: string[] = [];
    const started: RabbitServer[] = [];
    const start = async (name: string) => {
      const add = () => void seen.push(name);
      const options = { connection: { url: broker.url, name }, metrics: new Registry(), prefetch: { commands: 20, queries: 20 } };
      const one = await startUsersStub(options, { ...handlers, add });
      await eventually(() => one.check() === undefined);
      started.push(one);
      return one;
    };
    const publishSome = async () => {
      seen.length = 0;
      for (let number = 0; number < 10; number++) publish('commands.1', 'org');
      await eventually(() => seen.length === 10);
      return [...new Set(seen)];
    };
    await server.close();
    try {
      const others = { first: await start('first'), second: await start('second'), third: await start('third') };
      const took = await publishSome();
      expect(took).toHaveLength(1);
      await others[took[0] as keyof typeof others].close();
      const tookThen = await publishSome();
      expect(tookThen).toHaveLength(1);
      expect(tookThen).not.toEqual(took);
    } finally {
      for (const one of started) await one.close();
    }
  });

  it('keep their name during retries and in dead letters', async () => {
    handlers.add = (_, { attempt }) => {
      throw new ApiError(attempt === 1 ? 'UNAVAILABLE' : 'NOT_FOUND', 'Not now, and then not at all.');
    };
    publish('commands.3', 'org');
    const letter = await eventually(() => channel.get('users.commands.refused', { noAck: true }));
    expect(letter && letter.properties.headers).toMatchObject({ 'x-lane': 'commands.3', 'x-attempt': 2 });
  });

  it('count the age of their commands, without retries', async () => {
    const now = Math.floor(Date.now() / 1000);
    handlers.add = (_, { attempt }) => {
      if (attempt === 1) throw new ApiError('UNAVAILABLE', 'Not now.');
      return {};
    };
    publish('commands.3', 'org', { timestamp: now - 120 });
    publish('commands.2', 'org', { timestamp: now + 3600 });
    publish('commands.1', 'org');
    await eventually(async () => (await deliveries('acked')) === 3);
    const ages = (await metrics.getSingleMetric('rabbitmq_command_age_seconds')?.get())?.values ?? [];
    const sums = ages.filter((one) => 'metricName' in one && String(one.metricName).endsWith('_sum'));
    expect(sums.map(({ labels, value }) => [labels.queue, Math.round(value)]).toSorted()).toEqual([
      ['users.commands.2', 0],
      ['users.commands.3', expect.closeTo(119, -1)],
    ]);
  });

  it('write the letters of refused commands at a bounded rate, and lose none', async () => {
    handlers.add = () => {
      throw new ApiError('NOT_FOUND', 'Never.');
    };
    const from = performance.now();
    for (let number = 0; number < MISTAKES; number++) publish('commands.1', 'mistake');
    await eventually(async () => (await channel.checkQueue('users.commands.refused')).messageCount === MISTAKES, 30_000);
    // Each letter of two leaves its place unused for 5 ms, of which a timer may leave out one.
    expect(performance.now() - from).toBeGreaterThan(4 * (MISTAKES / 2 - 1));
  });

  it('drop expired messages, and do not block other messages by it', async () => {
    await server.close();
    for (const lane of LANES) for (let number = 0; number < 50; number++) publish(lane, 'late', { expiration: 1 });
    await channel.waitForConfirms();
    const waiting = async () => {
      const queues = LANES.map((_, lane) => channel.checkQueue(`users.commands.${lane}`));
      return (await Promise.all(queues)).reduce((sum, { messageCount }) => sum + messageCount, 0);
    };
    await eventually(async () => (await waiting()) === 0);
    for (const letters of ['dead', 'refused', 'crashed'])
      expect((await channel.checkQueue(`users.commands.${letters}`)).messageCount).toBe(0);
  });

  it('keep a limited number of refused commands for each publisher, and only stubs of malformed ones', async () => {
    const garbage = Buffer.alloc(600 * 1024, 'x');
    const account = new URL(broker.url).username;
    const whole = Buffer.from(JSON.stringify({ ...body('org'), padding: 'x'.repeat(900 * 1024) }));
    handlers.add = () => {
      throw new ApiError('NOT_FOUND', 'Never.');
    };
    const outcomes = async () => ({
      refused: await deliveries('refused'),
      dropped: await deliveries('refused_dropped'),
      letters: await metricValue(metrics, 'rabbitmq_letters_dropped_total'),
    });
    // An alert sees the first one only when the series was there before it.
    expect((await outcomes()).letters).toBe(0);
    for (let number = 0; number < 30; number++)
      channel.publish('commands.1', 'users.add.v1', garbage, { headers: { 'x-api-key': 'key' } });
    await channel.waitForConfirms();
    for (let number = 0; number < 30; number++) {
      channel.publish('commands.1', 'users.add.v1', whole, { headers: { 'x-api-key': 'key' } });
      // Other publishers: an account in the same lane, and another lane, which counts as the publisher without user_id.
      if (number >= 3) continue;
      channel.publish('commands.1', 'users.add.v1', whole, { headers: { 'x-api-key': 'key' }, userId: account });
      channel.publish('commands.2', 'users.add.v1', whole, { headers: { 'x-api-key': 'key' } });
    }
    await channel.waitForConfirms();
    await eventually(async () => {
      const { refused, dropped } = await outcomes();
      return refused + dropped === 66;
    });
    // 30 stubs, 3 of each other publisher, and the whole ones that fit into 8 MiB.
    expect(await outcomes()).toEqual({ refused: 30 + 3 + 3 + 9, dropped: 21, letters: 21 });
  });
});
