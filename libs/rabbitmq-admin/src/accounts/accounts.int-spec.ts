import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { openOwnQueue } from '@app/amqp/connection/own-queue';
import { openConnection } from '@app/amqp/connection/open-connection';
import { allows, publish, type Action } from '@app/testing/broker/allows';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { requiredEnv } from '@app/testing/required-env';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { ManagementApi } from '../management-api';
import { BINDINGS, LANES } from '@app/rabbitmq/topology/topology';
import { readCommandLine } from './command-line';
import { AccountError, run } from './run';
import { TAG, tagsOf, type User } from './tagged-accounts';

const KEYS = BINDINGS.filter(({ exchange }) => exchange === 'commands').map(({ routingKey }) => routingKey);

describe('accounts of other services', () => {
  let broker: TestBroker;
  let api: ManagementApi;
  // Accounts belong to the whole broker, not to the virtual host of this file.
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
      [publisher, '--operations', 'notifications.add.v1,users.add.v1', '--lane', '2'],
      [caller, '--operations', 'access.check.v1', '--lane', '0'],
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

  const allowed = (account: string, action: Action) => allows(models.get(account)!, action);
  const listen = (queue: string) => async (channel: ConfirmChannel) => {
    await channel.checkQueue(queue);
    await channel.consume(queue, () => undefined);
  };
  const replyQueue = (channel: ConfirmChannel) => openOwnQueue(channel, { exchange: 'replies' }, () => undefined);
  /** Names of its queues, and of their exchange. */
  const ownOf = async (name: string) => {
    const { queues, exchanges } = await broker.management.definitions();
    return [...queues, ...exchanges].map((one) => one.name).filter((one) => one.startsWith(`${name}.`));
  };

  it('publish only their operations, to the exchange of their lane', async () => {
    const keys: Record<string, string[]> = {};
    for (const account of [publisher, caller, listener]) {
      keys[account] = [];
      for (const exchange of ['calls', 'calls.standby', ...LANES]) {
        for (const key of KEYS) if (await allowed(account, publish(exchange, key))) keys[account].push(`${exchange} ${key}`);
      }
      for (const exchange of ['', 'replies', 'events', 'events.own', 'retry', 'dead', 'expired', 'amq.topic']) {
        expect([exchange, await allowed(account, publish(exchange, 'users.commands'))]).toEqual([exchange, false]);
      }
    }
    expect(keys).toEqual({
      [publisher]: ['commands.2 users.add.v1', 'commands.2 notifications.add.v1'],
      [caller]: ['commands access.check.v1'],
      [listener]: [],
    });
  });

  it('have a reply queue only when they wait', async () => {
    expect(await allowed(publisher, replyQueue)).toBe(false);
    expect(await allowed(caller, replyQueue)).toBe(true);
    expect(await allowed(listener, replyQueue)).toBe(false);
  });

  it('listen to the queue declared for them, and can neither declare nor bind queues', async () => {
    const queue = `${listener}.events`;
    expect(await allowed(listener, listen(queue))).toBe(true);
    expect(await allowed(listener, publish(`${queue}.dead`, ''))).toBe(true);
    expect(await allowed(listener, (channel) => channel.get(`${queue}.dead`))).toBe(true);
    expect(await allowed(listener, (channel) => channel.assertQueue(`${listener}.mail`))).toBe(false);
    expect(await allowed(listener, (channel) => channel.assertQueue('', { exclusive: true }))).toBe(false);
    for (const type of ['user.added.v1', 'notification.added.v1', '#']) {
      expect(await allowed(listener, (channel) => channel.bindQueue(queue, 'events', type))).toBe(false);
    }
    expect(await allowed(listener, (channel) => channel.deleteQueue(queue))).toBe(false);
    for (const other of [`${publisher}.events`, `${listener}x.events`])
      expect(await allowed(listener, (channel) => channel.get(other))).toBe(false);
    const { queues, bindings } = await broker.management.definitions();
    const limits = {
      'x-queue-type': 'quorum',
      'x-overflow': 'drop-head',
      'x-max-length': 100_000,
      'x-max-length-bytes': 2 ** 28,
    };
    expect(queues.find(({ name }) => name === queue)?.arguments).toEqual({
      ...limits,
      'x-delivery-limit': 20,
      'x-dead-letter-exchange': `${queue}.dead`,
    });
    expect(queues.find(({ name }) => name === `${queue}.dead`)?.arguments).toEqual({ ...limits, 'x-delivery-limit': 1_000_000 });
    expect(bindings.filter(({ destination }) => destination === queue)).toMatchObject([
      { source: 'events', routing_key: 'user.added.v1' },
    ]);
  });

  it('cannot bind their reply queue to events', async () => {
    const name = `both-${suffix}`;
    const { data } = await tool('create', name, '--operations', 'users.add.v1', '--replies', '--events', 'user.added.v1');
    models.set(name, await connectAs(data.url));
    const bind = async (channel: ConfirmChannel) => {
      const { queue } = await channel.assertQueue('', {
        exclusive: true,
        arguments: { 'x-max-length': 1, 'x-overflow': 'reject-publish' },
      });
      await channel.bindQueue(queue, 'events', 'user.added.v1');
    };
    expect(await allowed(name, replyQueue)).toBe(true);
    expect(await allowed(name, bind)).toBe(false);
    await tool('delete', name, '--queues');
  });

  it.each(['users.commands', 'notifications.events', 'users.commands.dead'])('cannot touch %s', async (queue) => {
    for (const account of [publisher, caller, listener]) {
      expect(await allowed(account, (channel) => channel.get(queue))).toBe(false);
      expect(await allowed(account, (channel) => channel.purgeQueue(queue))).toBe(false);
      expect(await allowed(account, (channel) => channel.deleteQueue(queue))).toBe(false);
      expect(await allowed(account, (channel) => channel.bindQueue(queue, 'events', 'user.added.v1'))).toBe(false);
    }
  });

  it('are listed with their purpose, changed, given a new password and deleted', async () => {
    const name = `other-${suffix}`;
    const args = ['--operations', 'users.add.v1', '--lane', '3', '--events', 'document.changed.v1', '--connections', '7'];
    const { data: created, lines } = await tool('create', name, ...args);
    expect(created).toMatchObject({ lane: 3, exchange: 'commands.3', queues: [`${name}.events`], connections: 7, channels: 500 });
    expect(lines.slice(2)).toEqual([
      'Publish to exchange commands.3: export COMMANDS_EXCHANGE=commands.3',
      `Listen to queue ${name}.events.`,
      `It acts for API keys that are granted to this name or to all accounts: npm run keys -- grant KEY --publisher ${name}`,
    ]);
    await expect(tool('create', name, '--operations', 'users.add.v1')).rejects.toThrow(AccountError);
    const listed = async () =>
      ((await tool('list')).data.accounts as { name: string }[]).find((account) => account.name === name);
    const limits = { connections: 7, channels: 500 };
    expect(await listed()).toEqual({
      ...{ name, operations: ['users.add.v1'], lane: 3, replies: false, ...limits },
      ...{ events: ['document.changed.v1'], queues: [`${name}.events`] },
    });
    await tool('change', name, '--operations', 'users.add.v1,contacts.list.v1', '--channels', '9');
    expect(await listed()).toEqual({
      ...{ name, operations: ['users.add.v1', 'contacts.list.v1'], lane: 3, replies: true, ...limits, channels: 9 },
      ...{ events: [], queues: [`${name}.events`] },
    });

    const { data: rotated, lines: said } = await tool('rotate', name);
    expect(said.at(-1)).toContain(`rabbitmqctl close_all_user_connections ${name} rotated`);
    await expect(connectAs(created.url)).rejects.toThrow('ACCESS_REFUSED');
    const model = await connectAs(rotated.url);
    const closed = new Promise((resolve) => model.once('close', resolve));
    expect(await tool('delete', name, '--queues')).toEqual({
      lines: [
        `Account ${name} deleted, with 2 queues.`,
        `Grants to its name stay, and a new account of this name has them: npm run keys -- withdraw KEY --publisher ${name}`,
      ],
      data: { name, queues: [] },
    });
    await closed;
    expect(await ownOf(name)).toEqual([]);
    expect(await listed()).toBeUndefined();
  });

  it('keep what an operator has added to them, when they get a new password', async () => {
    await broker.management.put(`users/${caller}`, { password: 'secret', tags: `${TAG},monitoring` });
    await tool('rotate', caller);
    const user = await api.get<User>(`users/${caller}`);
    expect(tagsOf(user!).toSorted()).toEqual([TAG, 'monitoring']);
  });

  it('say what is there already when they are created by half', async () => {
    const name = `half-${suffix}`;
    const nowhere = new URL(broker.url);
    nowhere.pathname = '/nowhere';
    const elsewhere = new ManagementApi(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'), nowhere.href);
    const create = readCommandLine(['create', name, '--operations', 'users.add.v1'])!;
    await expect(run(elsewhere, nowhere.href, create)).rejects.toThrow(
      `The account ${name} is there already, and not complete: delete it, and create it again.`,
    );
    await tool('delete', name);
    await tool('create', name, '--operations', 'users.add.v1');
    await tool('delete', name);
  });

  it('leave their queues when they are deleted without these, and a later run deletes them', async () => {
    const name = `left-${suffix}`;
    await tool('create', name, '--events', 'user.added.v1');
    const { data, lines } = await tool('delete', name);
    expect(data).toEqual({ name, queues: expect.arrayContaining([`${name}.events`, `${name}.events.dead`]) as string[] });
    expect(lines).toContain(`To delete them as well: npm run accounts -- delete ${name} --queues`);
    expect(await ownOf(name)).toHaveLength(3);
    expect((await tool('delete', name, '--queues')).lines[0]).toBe(`Account ${name} deleted, with 2 queues.`);
    expect(await ownOf(name)).toEqual([]);
    await expect(tool('delete', name, '--queues')).rejects.toThrow('There is no account');
  });

  it('have their queues bound only to their events', async () => {
    const name = `bound-${suffix}`;
    const boundTo = async () =>
      (await broker.management.definitions()).bindings
        .filter(({ source, destination }) => source === 'events' && destination.startsWith(`${name}.`))
        .map(({ destination, routing_key: key }) => `${destination} ${key}`)
        .toSorted();
    await tool('create', name, '--events', 'user.added.v1,document.changed.v1', '--queue', 'mail,push');
    expect(await boundTo()).toEqual([
      ...[`${name}.mail document.changed.v1`, `${name}.mail user.added.v1`],
      ...[`${name}.push document.changed.v1`, `${name}.push user.added.v1`],
    ]);
    await tool('change', name, '--events', 'user.added.v1,notification.added.v1', '--queue', 'mail');
    expect(await boundTo()).toEqual([`${name}.mail notification.added.v1`, `${name}.mail user.added.v1`]);
    await tool('change', name, '--events', 'user.added.v1');
    expect(await boundTo()).toEqual([`${name}.mail user.added.v1`, `${name}.push user.added.v1`]);
    await tool('delete', name, '--queues');
  });

  it('share lanes 1 and 2 evenly, and keep their lane when they change', async () => {
    const names = ['a', 'b', 'c'].map((one) => `lane-${one}-${suffix}`);
    const lanes = [];
    for (const name of names) lanes.push((await tool('create', name, '--operations', 'users.add.v1')).data.lane);
    // One of them is in lane 2 already.
    expect(lanes).toEqual([1, 1, 2]);
    expect((await tool('change', names[0], '--operations', 'documents.set.v1')).data.lane).toBe(1);
    expect((await tool('change', names[0], '--operations', 'documents.set.v1', '--lane', '3')).data.lane).toBe(3);
    expect((await tool('create', `${names[0]}x`, '--operations', 'users.add.v1')).data.lane).toBe(1);
    for (const name of [...names, `${names[0]}x`]) await tool('delete', name);
  });

  it('are the only ones it touches', async () => {
    const { username } = new URL(broker.url);
    await expect(tool('delete', username)).rejects.toThrow('was not made by this tool');
    await expect(tool('rotate', username)).rejects.toThrow('was not made by this tool');
    await expect(tool('change', `nobody-${suffix}`, '--events', 'user.added.v1')).rejects.toThrow('There is no account');
  });
});
