import { randomUUID } from 'node:crypto';
import type { Channel, ChannelModel, ConfirmChannel, ConsumeMessage, GetMessage, Options } from 'amqplib';
import { Registry } from 'prom-client';
import { ApiError } from '@app/contracts/error';
import { AddNotification } from '@app/contracts/notifications.add';
import { AddUsers, type AddUsersRequest } from '@app/contracts/users.add';
import { commandMessage, COMMANDS_TYPE, MOST_COMMANDS, unpackCommands } from '@app/amqp/messages/command-format';
import { openConnection } from '@app/amqp/connection/open-connection';
import { pack } from '@app/amqp/messages/packed';
import { repliesIn } from '@app/amqp/messages/reply-format';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { BASIC_ACK, FaultProxy, type Link } from '../../../test/faults/harness/fault-proxy';
import { RabbitClient } from '../src/client/rabbit.client';
import type { DeliveryContext } from '../src/delivery/delivery-context';
import type { RabbitServer } from '../src/server/rabbit.server';
import { declareTopology } from '../src/topology/declare-topology';
import { callQueue, refusedQueue, suspectQueue } from '../src/topology/topology';

const CALLS = callQueue('users');
const bodyOf = (organizationId: string): AddUsersRequest => ({ organizationId, users: [{ userId: 'u' }] });

describe('commands that share a message', () => {
  let broker: TestBroker;
  let account: string;
  let model: ChannelModel;
  let channel: ConfirmChannel;
  let client: RabbitClient;
  let clientMetrics: Registry;
  let server: RabbitServer | undefined;
  let metrics: Registry;
  let handlers: UsersHandlers;
  let replyTo: string;
  /** Replies to the messages that the test publishes itself. */
  let replies: ConsumeMessage[];
  /** Copies of the messages of the client. */
  let published: ConsumeMessage[];

  beforeAll(async () => {
    broker = await createTestBroker();
    account = new URL(broker.url).username;
    await declareTopology(broker.url);
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createConfirmChannel();
    ({ queue: replyTo } = await channel.assertQueue('', { exclusive: true }));
    await channel.bindQueue(replyTo, 'replies', replyTo);
    await channel.consume(replyTo, (message) => void (message && replies.push(message)), { noAck: true });
    const { queue: copies } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(copies, 'calls', AddUsers.pattern);
    await channel.consume(copies, (message) => void (message && published.push(message)), { noAck: true });
    await startClient();
  });
  afterAll(async () => {
    await client.close();
    await model.close();
    await broker.drop();
  });
  beforeEach(() => {
    [replies, published] = [[], []];
    metrics = new Registry();
    handlers = { add: () => ({}), authenticate: () => ({}), exists: () => ({}) };
  });
  afterEach(async () => {
    await server?.close();
    server = undefined;
    await channel.purgeQueue(CALLS);
  });

  /** A new one, because a client sends commands alone for a minute after a consumer could not read several. */
  const startClient = async () => {
    clientMetrics = new Registry();
    client = new RabbitClient({ connection: { url: broker.url, name: 'gateway' }, metrics: clientMetrics });
    await client.connect();
    await eventually(() => client.check() === undefined);
  };
  const startServer = async (url = broker.url) => {
    const options = { connection: { url, name: 'users' }, metrics, drainTimeoutMs: 200, crashPauseMs: 0 };
    server = await startUsersStub(options, handlers);
    await eventually(() => server?.check() === undefined);
  };
  const call = (organizationId: string, differences: { apiKey?: string; idempotencyKey?: string; messageId?: string } = {}) =>
    client
      .call(AddUsers, bodyOf(organizationId), { apiKey: 'key', requestId: organizationId, timeoutMs: 20_000, ...differences })
      .then(
        (answer) => answer.parse(),
        (error: unknown) => (error as ApiError).status,
      );
  const publish = async (exchange: string, body: Buffer, properties: Options.Publish) => {
    channel.publish(exchange, AddUsers.pattern, body, properties);
    await channel.waitForConfirms();
  };
  /** Publishes one message with a command for each organization. */
  const publishShared = async (organizationIds: readonly string[], exchange = 'calls') => {
    const requests = organizationIds.map((id) => ({
      operation: AddUsers,
      body: Buffer.from(JSON.stringify(bodyOf(id))),
      options: { apiKey: 'key', requestId: id, timeoutMs: 20_000, messageId: id },
      correlationId: id,
      deadline: performance.now() + 20_000,
    }));
    const { body, properties } = commandMessage(requests, randomUUID(), { appId: 'test', userId: account }, replyTo);
    await publish(exchange, body, properties);
  };
  /** The remains of a killed consumer. */
  const crash = async () => {
    const victim = await model.createChannel();
    await new Promise((resolve) => void victim.consume(CALLS, resolve));
    await victim.close();
    await eventually(async () => (await channel.checkQueue(CALLS)).messageCount === 1);
  };
  it('have their own tenant, identity, deadline and answer', async () => {
    const seen = new Map<string, DeliveryContext>();
    handlers.add = ({ organizationId }, context) => {
      seen.set(organizationId, context);
      if (organizationId === 'refused') throw new ApiError('NOT_FOUND', 'No.');
      return { organizationId };
    };
    await startServer();
    const answers = await Promise.all([
      call('one', { apiKey: 'tenant 1', idempotencyKey: 'i', messageId: 'm' }),
      call('refused', { apiKey: 'tenant 2' }),
      call(''),
      call('three'),
    ]);
    expect(answers).toEqual([{ organizationId: 'one' }, 'NOT_FOUND', 'INVALID_ARGUMENT', { organizationId: 'three' }]);
    expect(published.map(({ properties }) => properties.type)).toEqual([COMMANDS_TYPE]);
    expect(unpackCommands(published[0].content)).toHaveLength(4);
    expect(seen.get('one')).toMatchObject({
      apiKey: 'tenant 1',
      requestId: 'one',
      idempotencyKey: 'i',
      messageId: 'm',
      pattern: AddUsers.pattern,
      userId: account,
      appId: 'gateway',
      awaited: true,
      redelivered: false,
      deadline: expect.any(Number),
    });
    expect(seen.get('refused')).toMatchObject({ apiKey: 'tenant 2', requestId: 'refused', idempotencyKey: undefined });
  });

  it('are sent over the next channel, when theirs ends in the iteration of their calls', async () => {
    handlers.add = ({ organizationId }) => ({ organizationId });
    await startServer();
    const { channel: calling } = (client as unknown as { caller: { channel: { current?: Channel } } }).caller;
    // Again when the next channel has come too late, on a slow machine.
    await eventually(async () => {
      published = [];
      await eventually(() => client.check() === undefined);
      const ending = calling.current!;
      const calls = new Promise<unknown[]>((resolve) => {
        // Before the client sees the end.
        ending.prependOnceListener('close', () => resolve(Promise.all([call('a'), call('b')])));
      });
      await ending.close();
      expect(await calls).toEqual([{ organizationId: 'a' }, { organizationId: 'b' }]);
      return true;
    }, 20_000);
    expect(published.map(({ properties }) => properties.type)).toEqual([COMMANDS_TYPE]);
  });

  it('are acknowledged together, when the last one is settled', async () => {
    const redelivered: string[] = [];
    let hang = true;
    handlers.add = ({ organizationId }, context) => {
      if (context.redelivered) redelivered.push(organizationId);
      return organizationId === 'slow' && hang ? new Promise(() => undefined) : {};
    };
    await startServer();
    await publishShared(['quick', 'slow']);
    await eventually(() => replies.length === 1);
    await server?.close();
    hang = false;
    await startServer();
    await eventually(() => replies.length >= 2);
    expect(redelivered).toEqual(['quick', 'slow']);
    await eventually(async () => (await channel.checkQueue(CALLS)).messageCount === 0);
  });

  it('are handled alone, each as a message of its own, after two deliveries in vain', async () => {
    await publishShared(['a', 'b', 'c']);
    await crash();
    await crash();
    let running = 0;
    const most: number[] = [];
    handlers.add = async ({ organizationId }, context) => {
      most.push(++running);
      await channel.checkQueue(CALLS);
      running--;
      return { organizationId, messageId: context.messageId, userId: context.userId };
    };
    await startServer();
    await eventually(() => replies.length === 3);
    expect(most).toEqual([1, 1, 1]);
    const answers = replies.map(({ content, properties }) => [properties.correlationId, JSON.parse(content.toString())]);
    expect(answers).toEqual(['a', 'b', 'c'].map((id) => [id, { organizationId: id, messageId: id, userId: account }]));
    const { messageCount } = await channel.checkQueue(suspectQueue('users'));
    expect(messageCount).toBe(0);
  });

  it('are all suspects of their own, and their message is acknowledged, before the first of them may end the process', async () => {
    await publishShared(['a', 'b', 'c']);
    await crash();
    await crash();
    const { hostname: host, port } = new URL(broker.url);
    const proxy = await FaultProxy.start({ host, port: Number(port) });
    let publishing: Link | undefined;
    proxy.inspector = (bytes, direction, link) => {
      if (direction === 'toServer' && bytes.includes('users publishing')) publishing = link;
      return link === publishing && direction === 'toClient' && bytes.includes(BASIC_ACK) ? 'hold' : 'pass';
    };
    const handled: string[] = [];
    handlers.add = ({ organizationId }) => void handled.push(organizationId);
    try {
      await startServer(proxy.through(broker.url));
      // The broker has all of them, this process has the first one, and no confirm has come.
      await eventually(async () => (await channel.checkQueue(suspectQueue('users'))).messageCount === 2);
      await expect(eventually(() => handled.length > 0, 300)).rejects.toThrow();
      proxy.heal();
      await eventually(() => replies.length === 3);
    } finally {
      proxy.heal();
      await server?.close();
      server = undefined;
      await proxy.close();
    }
    expect(handled).toEqual(['a', 'b', 'c']);
    expect((await channel.checkQueue(CALLS)).messageCount).toBe(0);
  });

  it('are taken apart when a service of an earlier version has made the whole message a suspect', async () => {
    await publishShared(['a', 'b']);
    const { content, properties } = (await channel.get(CALLS, { noAck: true })) as GetMessage;
    const headers = { 'x-lane': 'calls', 'x-routing-key': AddUsers.pattern, 'x-origin-user': account, 'x-correlation-id': 'all' };
    channel.publish('retry', suspectQueue('users'), content, {
      ...(properties as Options.Publish),
      headers,
      expiration: undefined,
    });
    await channel.waitForConfirms();
    let [running, most] = [0, 0];
    handlers.add = async () => {
      most = Math.max(most, ++running);
      await channel.checkQueue(CALLS);
      running--;
    };
    await startServer();
    await eventually(() => replies.length === 2);
    expect(replies.map((reply) => reply.properties.correlationId as string)).toEqual(['a', 'b']);
    expect(most).toBe(1);
  });

  it('are sent again one by one, when the consumer is of a version that cannot read them', async () => {
    const earlier = await model.createChannel();
    const types: unknown[] = [];
    await earlier.consume(CALLS, (message) => {
      if (!message) return;
      const { type, correlationId, replyTo: to } = message.properties as unknown as Record<string, string>;
      types.push(type);
      const status = type === COMMANDS_TYPE ? 'INVALID_ARGUMENT' : 'OK';
      const body = Buffer.from(JSON.stringify({ message: 'No.', type }));
      earlier.publish('replies', to, body, { correlationId, headers: { 'x-status': status } });
      earlier.ack(message);
    });
    const answers = await Promise.all([call('a'), call('b')]);
    expect(answers).toEqual(Array(2).fill({ message: 'No.', type: AddUsers.pattern }));
    expect(types).toEqual([COMMANDS_TYPE, AddUsers.pattern, AddUsers.pattern]);
    await earlier.close();
  });

  it.each(['UNAVAILABLE', 'RESOURCE_EXHAUSTED', 'PERMISSION_DENIED', 'UNAUTHENTICATED', 'NOT_FOUND'] as const)(
    'are of unknown outcome, when each is answered %s after it was sent again',
    async (status) => {
      // Another consumer may have executed the shared message before it ended.
      const earlier = await model.createChannel();
      await earlier.consume(CALLS, (message) => {
        if (!message) return;
        const { correlationId, replyTo: to } = message.properties as unknown as Record<string, string>;
        earlier.publish('replies', to, Buffer.from('{"message":"No."}'), { correlationId, headers: { 'x-status': status } });
        earlier.ack(message);
      });
      await client.close();
      await startClient();
      expect(await Promise.all([call('a'), call('b')])).toEqual(Array(2).fill('DEADLINE_EXCEEDED'));
      await earlier.close();
    },
  );

  it('are refused as one, when they cannot be read, and executed beside such messages', async () => {
    const executed: string[] = [];
    handlers.add = ({ organizationId }) => void executed.push(organizationId);
    const body = Buffer.from(JSON.stringify(bodyOf('never')));
    const good = { head: ['good', 'good', { 'x-api-key': 'key' }], body };
    const unreadable = [
      Buffer.from('junk'),
      pack([good, { head: ['bad', null, {}], body }]),
      pack([good, good]).subarray(0, -1),
      pack(Array(MOST_COMMANDS + 1).fill(good)),
    ];
    await startServer();
    await publishShared(['a', 'b']);
    for (const [index, content] of unreadable.entries())
      await publish('calls', content, { type: COMMANDS_TYPE, replyTo, correlationId: `unreadable ${index}`, userId: account });
    await publishShared(['c', 'd']);
    const answers = () =>
      replies.flatMap(repliesIn).map(({ correlationId, reply }) => [correlationId, reply.headers['x-status']]);
    await eventually(() => answers().length === 4 + unreadable.length);
    expect(answers().toSorted()).toEqual([
      ...['a', 'b', 'c', 'd'].map((id) => [id, 'OK']),
      ...unreadable.map((_, index) => [`unreadable ${index}`, 'INVALID_ARGUMENT']),
    ]);
    expect(executed.toSorted()).toEqual(['a', 'b', 'c', 'd']);
  });

  describe('that the broker does not take', () => {
    const sharing = async () => {
      const { values } = (await clientMetrics.getSingleMetric('rabbitmq_commands_per_message')!.get()) as {
        values: { metricName?: string; value: number }[];
      };
      const sum = (name: string) =>
        values.filter(({ metricName }) => metricName?.endsWith(name)).reduce((all, { value }) => all + value, 0);
      return sum('_sum') - sum('_count');
    };
    /** Three commands in one message. */
    const three = async (add: () => Promise<unknown>) => {
      const before = await sharing();
      const answers = await Promise.allSettled([add(), add(), add()]);
      expect((await sharing()) - before).toBe(2);
      return answers.map((answer) => {
        const { status, cause } = (answer as PromiseRejectedResult).reason as { status: string; cause?: Error };
        return `${status}: ${cause?.message}`;
      });
    };
    const options = { apiKey: 'key', requestId: 'r' };

    it('have the same answer when it returns their message', async () => {
      const unbound = { ...AddUsers, pattern: 'users.add.v99' };
      const answers = await three(() => client.call(unbound, bodyOf('o'), { ...options, timeoutMs: 20_000 }));
      expect(answers).toEqual(Array(3).fill('UNAVAILABLE: no queue is bound for it'));
    });

    it('have the same answer when it refuses their message', async () => {
      const body = { organizationId: 'o', documentId: 'd', actionUser: { userId: 'u' }, displayHeadlineMessageTemplate: 't' };
      await broker.management.limitQueue(callQueue('notifications'), 1);
      const all: string[][] = [];
      // Nothing consumes that queue, and its limit takes effect a moment later.
      await eventually(async () => {
        all.push(await three(() => client.call(AddNotification, body, { ...options, timeoutMs: 300 })));
        return all.at(-1)![0].startsWith('UNAVAILABLE');
      });
      for (const answers of all) expect(new Set(answers).size).toBe(1);
      expect(all.at(-1)![0]).toBe('UNAVAILABLE: its queue is full');
    });
  });

  it('are not read from other services', async () => {
    let handled = 0;
    handlers.add = () => void handled++;
    await startServer();
    await publishShared(['a', 'b'], 'commands');
    await eventually(() => replies.length === 1);
    expect(replies[0].properties.headers).toEqual({ 'x-status': 'INVALID_ARGUMENT' });
    expect(handled).toBe(0);
    expect((await channel.checkQueue(refusedQueue('users'))).messageCount).toBe(0);
  });
});
