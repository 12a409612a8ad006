import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { openConnection } from '@app/amqp/open-connection';
import { createTestBroker, type TestBroker } from '@app/testing/broker';
import { requiredEnv } from '@app/testing/required-env';
import { declareTopology } from '../declare-topology';
import { ManagementApi } from '../management-api';
import { BINDINGS } from '../topology';
import { readCommandLine, UsageError } from './command-line';
import { AccountError, run } from './run';

const KEYS = BINDINGS.filter(({ exchange }) => exchange === 'commands').map(({ routingKey }) => routingKey);

describe('accounts of other services', () => {
  let broker: TestBroker;
  let api: ManagementApi;
  // Accounts belong to the broker of the run, not to the virtual host of this file.
  const suffix = Math.random().toString(36).slice(2, 8);
  const [publisher, caller, listener] = ['pub', 'call', 'listen'].map((name) => `${name}-${suffix}`);
  const models = new Map<string, ChannelModel>();

  const tool = async (...args: string[]) => {
    const invocation = readCommandLine(args);
    if (!invocation) throw new Error('help');
    return run(api, broker.url, invocation);
  };
  const connectAs = (url: unknown) => openConnection({ url: url as string, name: 'test' });

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    api = new ManagementApi(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'), broker.url);
    for (const [name, ...purpose] of [
      [publisher, '--operations', 'notifications.add.v1,users.add.v1'],
      [caller, '--operations', 'access.check.v1'],
      [listener, '--events', 'user.added.v1'],
    ]) {
      const { data } = await tool('create', name, ...purpose);
      models.set(name, await connectAs(data.url));
    }
  });
  afterAll(async () => {
    for (const model of models.values()) await model.close().catch(() => undefined);
    for (const name of [publisher, caller, listener]) await broker.management.delete(`users/${name}`).catch(() => undefined);
    await broker.drop();
  });

  /** @returns whether the broker lets the account do that */
  async function allowed(account: string, action: (channel: ConfirmChannel) => Promise<unknown>): Promise<boolean> {
    const channel = await models.get(account)!.createConfirmChannel();
    let refusal: { code?: number } | undefined;
    const ended = new Promise<void>((resolve) => {
      channel.once('error', (error: { code?: number }) => {
        refusal = error;
        resolve();
      });
    });
    await Promise.race([action(channel).catch((error: unknown) => (refusal ??= error as { code?: number })), ended]);
    if (!refusal) await channel.close();
    else if (refusal.code !== 403) throw new Error('refused for another reason', { cause: refusal });
    return refusal === undefined;
  }
  const publish = (exchange: string, key: string) => (channel: ConfirmChannel) => {
    channel.publish(exchange, key, Buffer.from('{}'));
    return channel.waitForConfirms();
  };
  const ownQueue = (name: string, type: string) => async (channel: ConfirmChannel) => {
    await channel.assertExchange(`${name}.dead`, 'fanout');
    const limits = { 'x-queue-type': 'quorum', 'x-dead-letter-exchange': `${name}.dead` };
    await channel.assertQueue(name, { durable: true, arguments: limits });
    await channel.bindQueue(name, 'events', type);
    await channel.get(name);
  };
  const replyQueue = async (channel: ConfirmChannel) => {
    const { queue } = await channel.assertQueue('', { exclusive: true, autoDelete: true });
    await channel.bindQueue(queue, 'replies', queue);
    await channel.consume(queue, () => undefined, { noAck: true });
  };

  it('publish what they were made for, and nothing else', async () => {
    const keys: Record<string, string[]> = {};
    for (const account of [publisher, caller, listener]) {
      keys[account] = [];
      for (const key of KEYS) if (await allowed(account, publish('commands', key))) keys[account].push(key);
      for (const exchange of ['', 'replies', 'events', 'retry', 'dead', 'amq.topic']) {
        expect([exchange, await allowed(account, publish(exchange, 'users.commands'))]).toEqual([exchange, false]);
      }
    }
    expect(keys).toEqual({
      [publisher]: ['users.add.v1', 'notifications.add.v1'],
      [caller]: ['access.check.v1'],
      [listener]: [],
    });
  });

  it('have a reply queue only when they wait', async () => {
    expect(await allowed(publisher, replyQueue)).toBe(false);
    expect(await allowed(caller, replyQueue)).toBe(true);
    expect(await allowed(listener, replyQueue)).toBe(false);
  });

  it('have event queues under their own name, for the types they were made for', async () => {
    expect(await allowed(listener, ownQueue(`${listener}.mail`, 'user.added.v1'))).toBe(true);
    expect(await allowed(listener, ownQueue(`${listener}.mail`, 'notification.added.v1'))).toBe(false);
    expect(await allowed(listener, ownQueue(`${listener}.mail`, '#'))).toBe(false);
    expect(await allowed(listener, ownQueue(`${publisher}.mail`, 'user.added.v1'))).toBe(false);
    expect(await allowed(listener, ownQueue(`${listener}x.mail`, 'user.added.v1'))).toBe(false);
    expect(await allowed(caller, ownQueue(`${caller}.mail`, 'user.added.v1'))).toBe(false);
  });

  it.each(['users.commands', 'notifications.events', 'users.commands.dead'])('cannot touch %s', async (queue) => {
    for (const account of [publisher, caller, listener]) {
      expect(await allowed(account, (channel) => channel.get(queue))).toBe(false);
      expect(await allowed(account, (channel) => channel.purgeQueue(queue))).toBe(false);
      expect(await allowed(account, (channel) => channel.deleteQueue(queue))).toBe(false);
      expect(await allowed(account, (channel) => channel.bindQueue(queue, 'events', 'user.added.v1'))).toBe(false);
    }
  });

  it('are listed with what they are for, changed, given a new password and deleted', async () => {
    const name = `other-${suffix}`;
    const { data: created } = await tool('create', name, '--operations', 'users.add.v1', '--events', 'document.changed.v1');
    await expect(tool('create', name, '--operations', 'users.add.v1')).rejects.toThrow(AccountError);
    const listed = async () =>
      ((await tool('list')).data.accounts as { name: string }[]).find((account) => account.name === name);
    expect(await listed()).toEqual({ name, operations: ['users.add.v1'], replies: false, events: ['document.changed.v1'] });
    await tool('change', name, '--operations', 'users.add.v1,contacts.list.v1');
    expect(await listed()).toEqual({ name, operations: ['users.add.v1', 'contacts.list.v1'], replies: true, events: [] });

    const { data: rotated } = await tool('rotate', name);
    await expect(connectAs(created.url)).rejects.toThrow('ACCESS_REFUSED');
    const model = await connectAs(rotated.url);
    await tool('change', name, '--events', 'user.added.v1');
    const channel = await model.createChannel();
    await channel.assertQueue(`${name}.mail`, { durable: true });
    const closed = new Promise((resolve) => model.once('close', resolve));
    expect((await tool('delete', name, '--queues')).lines).toEqual([`Account ${name} deleted, with 1 queues.`]);
    await closed;
    expect((await broker.management.definitions()).queues.map((queue) => queue.name)).not.toContain(`${name}.mail`);
    expect(await listed()).toBeUndefined();
  });

  it('are the only ones it touches', async () => {
    const { username } = new URL(broker.url);
    await expect(tool('delete', username)).rejects.toThrow('was not made by this tool');
    await expect(tool('rotate', username)).rejects.toThrow('was not made by this tool');
    await expect(tool('change', `nobody-${suffix}`, '--events', 'user.added.v1')).rejects.toThrow('There is no account');
  });

  it.each([
    [['create', 'users', '--events', 'user.added.v1'], 'a name of the system'],
    [['create', 'amq', '--events', 'user.added.v1'], 'a name of the system'],
    [['create', 'a.b', '--events', 'user.added.v1'], 'NAME must be'],
    [['create', 'x'], 'Say what it is for'],
    [['create', 'x', '--operations', 'users.authorize.v1'], '--operations has no "users.authorize.v1"'],
    [['create', 'x', '--events', '#'], '--events has no "#"'],
    [['create', 'x', '--replies', '--events', 'user.added.v1'], '--replies needs --operations'],
    [['delete'], 'needs the NAME'],
    [['list', 'x'], 'one word too many'],
    [['rotate', 'x', '--queues'], 'rotate has no option --queues'],
  ])('refuse %j', (args, message) => {
    expect(() => readCommandLine(args)).toThrow(UsageError);
    expect(() => readCommandLine(args)).toThrow(message);
  });
});
