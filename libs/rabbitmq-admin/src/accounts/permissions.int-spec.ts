import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { Registry } from 'prom-client';
import { ALL_EVENTS } from '@app/contracts/all-events';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import type { CallerName } from '@app/contracts/message';
import { AddUsers } from '@app/contracts/users.add';
import { Authenticate } from '@app/contracts/users.authenticate';
import { Exists } from '@app/contracts/users.exists';
import { allows, publish, type Action } from '@app/testing/broker/allows';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { BrokerLinks } from '@app/testing/broker/broker-links';
import { eventually } from '@app/testing/eventually';
import { requiredEnv } from '@app/testing/required-env';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { ACCOUNTS, RIGHTS, type Account } from './rights';
import { consumedQueues } from '@app/rabbitmq/topology/consumed-queues';
import { declareAccounts } from './declare-accounts';
import { ManagementApi } from '../management-api';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { openConnection } from '@app/amqp/connection/open-connection';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { BINDINGS, EXCHANGES, LANES, QUEUES } from '@app/rabbitmq/topology/topology';

const KEYS = BINDINGS.filter(({ exchange }) => exchange === 'commands').map(({ routingKey }) => routingKey);

describe('the accounts', () => {
  let broker: TestBroker;
  let vhost: string;
  let api: ManagementApi;
  const models = new Map<Account, ChannelModel>();
  const urls = {} as Record<Account, string>;

  beforeAll(async () => {
    broker = await createTestBroker();
    vhost = new URL(broker.url).pathname.slice(1);
    await declareTopology(broker.url);
    for (const account of ACCOUNTS) {
      const url = new URL(broker.url);
      url.username = `${account}-${vhost}`;
      url.password = 'p@ss word';
      urls[account] = url.href;
    }
    api = new ManagementApi(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'), broker.url);
    const declare = () => declareAccounts(api, urls);
    expect(await declare()).toEqual(ACCOUNTS.map((account) => `${account}-${vhost}`));
    await declare();
    for (const account of ACCOUNTS) models.set(account, await openConnection({ url: urls[account], name: account }));
  });
  afterAll(async () => {
    for (const model of models.values()) await model.close();
    for (const account of ACCOUNTS) await broker.management.delete(`users/${account}-${vhost}`);
    await broker.drop();
  });

  const allowed = (account: Account, action: Action) => allows(models.get(account)!, action);

  const allowedOf = async (
    account: Account,
    names: readonly string[],
    action: (channel: ConfirmChannel, name: string) => unknown,
  ) => {
    const found: string[] = [];
    for (const name of names) {
      if (await allowed(account, async (channel) => action(channel, name))) found.push(name);
    }
    return found;
  };

  /** Routing keys that the declarations give to a process. */
  const declaredFor = (caller: CallerName) =>
    ALL_MESSAGES.filter(({ callers }) => callers.includes(caller)).map(({ pattern }) => pattern);

  it.each<[Account, string[], string[]]>([
    ['gateway', ['calls', 'calls.standby', 'commands'], declaredFor('gateway')],
    ['users', ['replies', 'events.own', 'events', 'retry', 'dead'], []],
    [
      'notifications',
      ['calls', 'calls.standby', 'commands', 'replies', 'events.own', 'events', 'retry', 'dead'],
      declaredFor('notifications'),
    ],
    ['publisher', ['commands'], ['notifications.add.v1']],
  ])('%s publishes to %j, there with %j, and to nothing else', async (account, exchanges, keys) => {
    const others = ['', 'amq.topic', 'amq.direct', 'amq.fanout', 'amq.headers'];
    const withKeys: string[] = ['calls', 'calls.standby', ...LANES];
    const every = EXCHANGES.map(({ name }) => name).filter((name) => !withKeys.includes(name));
    const found = await allowedOf(account, [...every, ...others], (channel, exchange) =>
      publish(exchange, 'users.commands')(channel),
    );
    for (const exchange of withKeys) {
      const foundKeys = await allowedOf(account, [...KEYS, 'users.add.v1.x', 'other', ''], (channel, key) =>
        publish(exchange, key)(channel),
      );
      if (foundKeys.length === 0) continue;
      found.push(exchange);
      expect(foundKeys.toSorted()).toEqual(keys.toSorted());
    }
    expect(found.toSorted()).toEqual(exchanges.toSorted());
  });

  it.each<[Account, string[]]>([
    ['gateway', []],
    ['users', consumedQueues('users', ['commands', 'queries'], 1).map(({ name }) => name)],
    ['notifications', consumedQueues('notifications', ['commands', 'queries', 'events'], 1).map(({ name }) => name)],
    ['publisher', []],
  ])('%s reads %j, and no other queue', async (account, queues) => {
    const names = QUEUES.map(({ name }) => name);
    const found = await allowedOf(account, names, (channel, name) => channel.get(name));
    expect(found.toSorted()).toEqual(queues.toSorted());
  });

  it.each<[Account, boolean]>([
    ['gateway', true],
    ['users', false],
    ['notifications', true],
    ['publisher', false],
  ])('%s may have a reply queue: %s; none may declare, bind, purge or delete anything else', async (account, replies) => {
    const own = async (channel: ConfirmChannel) => {
      const { queue } = await channel.assertQueue('', { exclusive: true, autoDelete: true });
      await channel.bindQueue(queue, 'replies', queue);
    };
    expect(await allowed(account, own)).toBe(replies);
    const sabotage: [string, (channel: ConfirmChannel) => Promise<unknown>][] = [
      ['declare a queue', (channel) => channel.assertQueue('mine')],
      ['declare an exchange', (channel) => channel.assertExchange('mine', 'topic')],
      ['delete a queue', (channel) => channel.deleteQueue('users.commands')],
      ['delete an exchange', (channel) => channel.deleteExchange('commands')],
      ['bind a queue', (channel) => channel.bindQueue('users.commands', 'commands', '#')],
      [
        'purge a queue of others',
        (channel) => channel.purgeQueue(account === 'users' ? 'notifications.commands' : 'users.commands'),
      ],
    ];
    const found = [];
    for (const [what, action] of sabotage) if (await allowed(account, action)) found.push(what);
    expect(found).toEqual([]);
  });

  it.each<[Account, string[]]>([
    ['gateway', ['api-key.revoked.v1']],
    ['users', []],
    ['notifications', []],
    ['publisher', []],
  ])('%s may hear %j in a queue of its own, and no other event', async (account, events) => {
    const types = [...ALL_EVENTS.map(({ type }) => type), '#', 'api-key.*'];
    const hear = async (channel: ConfirmChannel, type: string) => {
      const { queue } = await channel.assertQueue('', { exclusive: true, autoDelete: true });
      await channel.bindQueue(queue, 'events.own', type);
    };
    expect(await allowedOf(account, types, hear)).toEqual(events);
    const another = async (channel: ConfirmChannel, type: string) => {
      const { queue } = await channel.assertQueue('', { exclusive: true, autoDelete: true });
      await channel.bindQueue(queue, 'events', type);
    };
    expect(await allowedOf(account, types, another)).toEqual([]);
  });

  it('cannot pretend to be another account', async () => {
    const channel = await models.get('publisher')!.createConfirmChannel();
    const refused = new Promise((resolve) => channel.once('error', resolve));
    channel.publish('commands', 'notifications.add.v1', Buffer.from('{}'), { userId: `gateway-${vhost}` });
    expect(String(await refused)).toContain('PRECONDITION_FAILED');
  });

  it.each<Account>(['gateway', 'notifications'])('let %s call, and users answer', async (caller) => {
    const metrics = new Registry();
    const server = await startUsersStub(
      { connection: { url: urls.users, name: 'users' }, prefetch: { commands: 10, queries: 10 }, metrics },
      {
        add: () => undefined,
        authenticate: () => ({ verdict: 'accepted' }),
        authorize: () => ({ granted: true }),
        exists: () => ({ apiKey: true, organization: false, document: false }),
      },
    );
    const client = new RabbitClient({ connection: { url: urls[caller], name: caller }, metrics });
    await client.connect();
    await eventually(() => client.check() === undefined && server.check() === undefined);
    const call = { apiKey: 'key', requestId: 'r', timeoutMs: 5000 };
    const answer =
      caller === 'gateway'
        ? await client.call(Authenticate, { apiKey: 'key', tokenHash: 'a'.repeat(64) }, call)
        : await client.call(Exists, {}, call);
    expect(answer.parse()).toBeDefined();
    await client.close();
    await server.close();
  });

  it('a missing right is the reason why a process is not ready, and not its queues', async () => {
    const links = await BrokerLinks.to(urls.users, 2);
    const metrics = new Registry();
    const users = `users-${vhost}`;
    const { configure, write, read } = RIGHTS.users;
    // As after an upgrade without set-up: one operation is new, and one exchange.
    const topic = { exchange: 'calls', write: '^users\\.authenticate\\.v1$', read: '^$' };
    await broker.management.put(`topic-permissions/${vhost}/gateway-${vhost}`, topic);
    await broker.management.put(`permissions/${vhost}/${users}`, { configure, write: write.replace('retry|', ''), read });
    const calls = { as: 'gateway' as const, messages: [AddUsers] };
    const client = new RabbitClient({ connection: { url: urls.gateway, name: 'gateway' }, calls, metrics });
    await client.connect();
    const server = await startUsersStub({ connection: { url: links.url, name: 'users' }, metrics }, {} as UsersHandlers);
    try {
      await eventually(() => client.check()?.includes("access to topic 'users.add.v1'"));
      await eventually(() => server.check()?.includes("access to exchange 'retry'"));
    } finally {
      await declareAccounts(api, urls);
      await client.close();
      await server.close();
      await links.close();
    }
  });

  it('reports why they cannot be created, without a password', async () => {
    const wrong = new URL(broker.url);
    wrong.password = 'hunter2';
    const managementUrl = new URL(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'));
    managementUrl.username = managementUrl.password = '';
    await expect(declareAccounts(new ManagementApi(managementUrl.href, wrong.href), urls)).rejects.toThrow(
      new Error(
        `the management API answered 401 to PUT users/gateway-${vhost}: a wrong login, or one without the tag administrator`,
      ),
    );
    await expect(declareAccounts(new ManagementApi('http://127.0.0.1:1', broker.url), urls)).rejects.toThrow(
      'the management API cannot be reached',
    );
  });
});
