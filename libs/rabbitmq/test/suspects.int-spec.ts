import type { ConfirmChannel, Message, Options } from 'amqplib';
import { Registry } from 'prom-client';
import { openOwnQueue } from '@app/amqp/connection/own-queue';
import type { AddUsersRequest } from '@app/contracts/users.add';
import { createDeclaredBroker, type DeclaredBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { metricValue } from '@app/testing/metric-value';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import type { DeliveryContext } from '../src/delivery/delivery-context';
import type { RabbitServer } from '../src/server/rabbit.server';
import { againQueue, crashedQueue, suspectQueue } from '../src/topology/topology';

const SUSPECTS = suspectQueue('users');
const CRASHED = crashedQueue('users');
const AGAIN = againQueue('users');

const bodyOf = (organizationId: string) =>
  Buffer.from(JSON.stringify({ organizationId, users: [{ userId: 'u' }] } satisfies AddUsersRequest));

/** Commands whose consumers ended. For the broker, a channel closed with an unsettled delivery is the same as a crash. */
describe('suspects', () => {
  let broker: DeclaredBroker;
  let channel: ConfirmChannel;
  let server: RabbitServer | undefined;
  let metrics: Registry;
  let handlers: UsersHandlers;

  beforeAll(async () => {
    broker = await createDeclaredBroker();
    ({ channel } = broker);
  });
  afterAll(() => broker.drop());
  beforeEach(() => {
    metrics = new Registry();
    handlers = { add: () => ({}), authenticate: () => ({}), exists: () => ({}) };
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await stopServer();
    for (const queue of ['users.commands.0', AGAIN, SUSPECTS, CRASHED]) await channel.purgeQueue(queue);
  });

  /** Long enough for a busy machine to publish something while a command waits. */
  const PAUSE_MS = 3000;
  const startServer = async (crashPauseMs = 0) => {
    // A wait takes up to twice as long by chance.
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const options = { connection: { url: broker.url, name: 'users' }, metrics, drainTimeoutMs: 200, crashPauseMs };
    server = await startUsersStub(options, handlers);
    await eventually(() => server?.check() === undefined);
  };
  const stopServer = async () => {
    await server?.close();
    server = undefined;
  };
  const publish = async (organizationId: string, options: Options.Publish = {}) => {
    const headers = { 'x-api-key': 'key' };
    channel.publish('commands', 'users.add.v1', bodyOf(organizationId), { persistent: true, headers, ...options });
    await channel.waitForConfirms();
  };
  /** Lets consumers take all messages of the queue and end without settling them. */
  const crash = async (queue: string, times: number) => {
    for (let time = 0; time < times; time++) {
      const { messageCount } = await channel.checkQueue(queue);
      const victim = await broker.model.createChannel();
      let delivered = 0;
      await victim.consume(queue, () => delivered++);
      await eventually(() => delivered === messageCount);
      await victim.close();
      await eventually(async () => (await channel.checkQueue(queue)).messageCount === messageCount || (await dead()) > 0);
    }
  };
  const dead = async () => (await channel.checkQueue(CRASHED)).messageCount;
  const suspects = () => metricValue(metrics, 'rabbitmq_deliveries_total', { outcome: 'suspect' });

  it('are commands that were delivered twice before; one delivery is not enough', async () => {
    await publish('twice');
    await crash('users.commands.0', 1);
    await publish('once');
    await crash('users.commands.0', 1);
    const handled: string[] = [];
    handlers.add = ({ organizationId }) => handled.push(organizationId);
    await startServer();
    await eventually(() => handled.length === 2);
    expect(handled.toSorted()).toEqual(['once', 'twice']);
    expect(await suspects()).toBe(1);
  });

  it('are not commands whose publisher sets x-delivery-count', async () => {
    await publish('liar', { headers: { 'x-api-key': 'key', 'x-delivery-count': 7 } });
    let handled = 0;
    handlers.add = () => void handled++;
    await startServer();
    await eventually(() => handled === 1);
    expect(await suspects()).toBe(0);
  });

  /** Publishes a command to the queue of the suspects, as a service does. */
  const publishSuspect = async (organizationId: string, options: Options.Publish = {}) => {
    const headers = { 'x-api-key': 'key', 'x-routing-key': 'users.add.v1', ...(options.headers as object) };
    channel.publish('retry', SUSPECTS, bodyOf(organizationId), { persistent: true, ...options, headers });
    await channel.waitForConfirms();
  };

  /** Commands that end when their gate is opened. */
  const gated = () => {
    const events: string[] = [];
    const gates = new Map<string, () => void>();
    handlers.add = async ({ organizationId }) => {
      events.push(`begin ${organizationId}`);
      await new Promise<void>((resolve) => gates.set(organizationId, resolve));
      events.push(`end ${organizationId}`);
      return {};
    };
    const end = async (organizationId: string) => {
      await eventually(() => gates.has(organizationId));
      gates.get(organizationId)?.();
    };
    return { events, gates, end };
  };

  it('wait after a crash, and hold up no other command meanwhile', async () => {
    await publishSuspect('suspect');
    await crash(SUSPECTS, 1);
    const handled: string[] = [];
    handlers.add = ({ organizationId }) => handled.push(organizationId);
    await startServer(PAUSE_MS);
    await publish('other');
    await eventually(() => handled.length === 2);
    expect(handled).toEqual(['other', 'suspect']);
  });

  it('leave time after a crash before the next one is handled', async () => {
    await publishSuspect('suspect');
    await crash(SUSPECTS, 1);
    await publishSuspect('next');
    const handled: string[] = [];
    handlers.add = ({ organizationId }) => handled.push(organizationId);
    await startServer(PAUSE_MS);
    await publish('other');
    await eventually(() => handled.length === 3);
    expect(handled[0]).toBe('other');
  });

  it('are not given up for processes that end while they wait', async () => {
    await publishSuspect('suspect');
    await crash(SUSPECTS, 1);
    for (let time = 0; time < 4; time++) {
      await startServer(60_000);
      await eventually(async () => (await metricValue(metrics, 'rabbitmq_deliveries_in_flight', { queue: AGAIN })) === 1);
      await stopServer();
      metrics = new Registry();
      await eventually(async () => (await channel.checkQueue(AGAIN)).messageCount === 1);
    }
    let handled = 0;
    handlers.add = () => void handled++;
    await startServer();
    await eventually(() => handled === 1);
    expect(await dead()).toBe(0);
  });

  it('wait before they become suspects for the process that has ended, unless their caller waits', async () => {
    await publish('suspect');
    await publish('awaited', { replyTo: 'q', headers: { 'x-api-key': 'key', 'x-deadline': Date.now() + 30_000 } });
    await crash('users.commands.0', 2);
    const handled: string[] = [];
    handlers.add = ({ organizationId }) => handled.push(organizationId);
    await startServer(PAUSE_MS);
    await eventually(() => handled.length === 1);
    await publish('other');
    await eventually(() => handled.length === 3);
    expect(handled).toEqual(['awaited', 'other', 'suspect']);
  });

  it('are not handled again after a crash, when their caller would be gone after the wait', async () => {
    const replies: Message[] = [];
    const replyTo = await openOwnQueue(channel, { exchange: 'replies' }, (reply) => replies.push(reply));
    await publishSuspect('suspect', { headers: { 'x-deadline': Date.now() + 30_000 }, replyTo });
    await crash(SUSPECTS, 1);
    let handled = 0;
    handlers.add = () => void handled++;
    await startServer(60_000);
    await eventually(() => replies.length === 1);
    expect(replies[0].properties.headers).toEqual({ 'x-status': 'DEADLINE_EXCEEDED' });
    expect(handled).toBe(0);
  });

  it('are handled and answered like the original command', async () => {
    const replies: Message[] = [];
    const replyTo = await openOwnQueue(channel, { exchange: 'replies' }, (reply) => replies.push(reply));
    const deadline = Date.now() + 30_000;
    const headers = { 'x-api-key': 'key', 'x-deadline': deadline, 'x-idempotency-key': 'i', 'x-request-id': 'r', 'x-mine': 1 };
    await publish('org', { headers, replyTo, correlationId: 'the caller', messageId: 'm', appId: 'importer' });
    await publish('org', { headers, replyTo });
    await crash('users.commands.0', 2);
    const seen: DeliveryContext[] = [];
    handlers.add = (_, context) => {
      seen.push(context);
      return { done: true };
    };
    await startServer();
    await eventually(() => replies.length === 2);
    expect(replies.map(({ properties: { correlationId } }) => correlationId as unknown)).toEqual(['the caller', undefined]);
    expect(replies.map(({ content }) => JSON.parse(content.toString()) as unknown)).toEqual([{ done: true }, { done: true }]);
    expect(seen[0]).toMatchObject({
      apiKey: 'key',
      messageId: 'm',
      requestId: 'r',
      deadline,
      idempotencyKey: 'i',
      awaited: true,
      attempt: 1,
      pattern: 'users.add.v1',
      appId: 'importer',
    });
  });

  it('are handled alone: running commands end first, and no other command starts meanwhile', async () => {
    await publish('suspect 1');
    await publish('suspect 2');
    await crash('users.commands.0', 2);
    const { events, gates, end } = gated();
    // The server starts first, so that it runs when they arrive.
    await startServer();
    await eventually(() => events.length === 1);
    await publish('other');
    await end('suspect 1');
    await expect(eventually(() => gates.has('other'), 200)).rejects.toThrow();
    await end('suspect 2');
    await end('other');
    await eventually(() => events.length === 6);
    expect(events).toEqual(['suspect 1', 'suspect 2', 'other'].flatMap((name) => [`begin ${name}`, `end ${name}`]));
    await eventually(() => server?.check() === undefined);
  });

  it('are handled alone also when a command has waited for the process that has ended', async () => {
    const { events, gates, end } = gated();
    await publish('waiting');
    await crash('users.commands.0', 1);
    await startServer(PAUSE_MS);
    await publishSuspect('suspect');
    await eventually(() => gates.has('suspect'));
    // Its wait is over within this time.
    await expect(eventually(() => gates.has('waiting'), PAUSE_MS + 500)).rejects.toThrow();
    await end('suspect');
    await end('waiting');
    await eventually(() => events.length === 4);
    expect(events).toEqual(['begin suspect', 'end suspect', 'begin waiting', 'end waiting']);
  });

  it('wait for the commands that are running', async () => {
    const { events, gates, end } = gated();
    await startServer();
    await publish('running');
    await eventually(() => events.length === 1);
    await publishSuspect('suspect');
    await eventually(async () => (await channel.checkQueue(SUSPECTS)).messageCount === 0);
    await expect(eventually(() => gates.has('suspect'), 200)).rejects.toThrow();
    await end('running');
    await end('suspect');
    await eventually(() => events.length === 4);
    expect(events).toEqual(['begin running', 'end running', 'begin suspect', 'end suspect']);
  });

  it('go to the crashed queue after four more crashes, also when they waited after each of them', async () => {
    const headers = { 'x-correlation-id': 'c', 'x-first-failed-at': 1_800_000_000_000 };
    await publishSuspect('poison', { messageId: 'poison', replyTo: 'q', headers });
    let handled = 0;
    handlers.add = () => {
      handled++;
      return new Promise(() => undefined);
    };
    for (let time = 1; time <= 4; time++) {
      await startServer();
      await eventually(() => handled === time);
      await stopServer();
      metrics = new Registry();
    }
    await startServer();
    await eventually(async () => (await dead()) === 1);
    expect(handled).toBe(4);
    expect(await metricValue(metrics, 'rabbitmq_deliveries_total', { outcome: 'crashed' })).toBe(1);
    const letter = await channel.get(CRASHED, { noAck: true });
    const account = new URL(broker.url).username;
    expect(letter && letter.properties).toMatchObject({ messageId: 'poison', replyTo: 'q', userId: account });
    expect(letter && letter.properties.headers).toMatchObject({
      'x-routing-key': 'users.add.v1',
      ...headers,
      'x-crashes': 4,
    });
  });

  it('go to the crashed queue after four more crashes, unchanged', async () => {
    await publish('poison', { messageId: 'poison', replyTo: 'q', correlationId: 'c' });
    await crash('users.commands.0', 2);
    handlers.add = () => new Promise(() => undefined);
    await startServer();
    await eventually(async () => (await suspects()) === 1);
    await stopServer();
    await eventually(async () => (await channel.checkQueue(SUSPECTS)).messageCount === 1);
    await crash(SUSPECTS, 3);
    await eventually(async () => (await dead()) === 1);
    const letter = await channel.get(CRASHED, { noAck: true });
    const account = new URL(broker.url).username;
    expect(letter && letter.properties).toMatchObject({ messageId: 'poison', replyTo: 'q', userId: account });
    expect(letter && letter.properties.headers).toMatchObject({
      'x-routing-key': 'users.add.v1',
      'x-correlation-id': 'c',
      'x-death': [{ reason: 'delivery_limit', queue: SUSPECTS }],
    });
  });
});
