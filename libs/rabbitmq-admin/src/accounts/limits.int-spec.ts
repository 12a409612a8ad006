import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { openConnection } from '@app/amqp/connection/open-connection';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { requiredEnv } from '@app/testing/required-env';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { ManagementApi } from '../management-api';
import { readCommandLine } from './command-line';
import { boundEverybody, DEFAULT_LIMITS, limitsOf } from './limits';
import { run } from './run';
import { TAG } from './tagged-accounts';

/** More empty messages than a listener's queue may hold. */
const TOO_MANY = 100_500;

describe('the limits of accounts', () => {
  let broker: TestBroker;
  let api: ManagementApi;
  let admin: ChannelModel;
  const name = `limited-${Math.random().toString(36).slice(2, 8)}`;
  const models: ChannelModel[] = [];

  const tool = (...args: string[]) => run(api, broker.url, readCommandLine(args)!);
  const connect = async (url: unknown) => {
    const model = await openConnection({ url: url as string, name: 'test' });
    models.push(model);
    return model;
  };

  beforeEach(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    api = new ManagementApi(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'), broker.url);
    admin = await connect(broker.url);
  });
  afterEach(async () => {
    for (const model of models.splice(0)) await model.close().catch(() => undefined);
    await broker.management.delete(`users/${name}`).catch(() => undefined);
    await broker.drop();
  });

  it('refuse a connection and a channel above the limit', async () => {
    const { data } = await tool('create', name, '--operations', 'users.add.v1', '--connections', '3', '--channels', '4');
    const open = await Promise.all([connect(data.url), connect(data.url), connect(data.url)]);
    await eventually(() => connectionIsRefused(data.url));
    let error: Error | undefined;
    open[0].once('error', (refusal: Error) => (error = refusal));
    for (let channels = 0; channels < 4; channels++) await open[channels % 3].createChannel();
    await eventually(async () => error ?? !(await open[0].createChannel()));
    expect(error?.message).toContain('NOT_ALLOWED');
  });

  it('are 50 connections and 500 channels by default', async () => {
    const { data } = await tool('create', name, '--operations', 'users.add.v1');
    const open = await Promise.all(Array.from({ length: 50 }, () => connect(data.url)));
    expect(open).toHaveLength(50);
    await eventually(() => connectionIsRefused(data.url));
    expect(await limitsOf(api, name)).toEqual(DEFAULT_LIMITS);
  });

  it('limit unlimited queues of an account of an earlier version, and keep limits that an operator has set', async () => {
    await api.put(`users/${name}`, { password: 'secret', tags: TAG });
    await api.put(`permissions/${api.vhost}/${name}`, { configure: `^${name}\\..*$`, write: '.*', read: '.*' });
    await api.put(`user-limits/${name}/max-connections`, { value: 2 });
    const url = new URL(broker.url);
    url.username = name;
    url.password = 'secret';
    const channel = await (await connect(url.href)).createConfirmChannel();
    await channel.assertQueue(`${name}.endless`, { durable: true });
    await channel.bindQueue(`${name}.endless`, 'events', '#');

    expect(await boundEverybody(api)).toBeGreaterThan(0);
    expect(await limitsOf(api, name)).toEqual({ connections: 2, channels: 500 });
    await publishMany(await admin.createConfirmChannel(), 'user.added.v1');
    await eventually(async () => (await channel.checkQueue(`${name}.endless`)).messageCount === 100_000, 30_000, 100);
    const policies = await api.get<{ pattern: string; definition: object }[]>(`operator-policies/${api.vhost}`);
    expect(policies?.find(({ pattern }) => pattern === '^amq\\.gen-')?.definition).toEqual({
      'max-length': 20_000,
      'max-length-bytes': 2 ** 26,
    });
  });

  it('change alone, with the lane, and the account keeps what it may do', async () => {
    const purpose = { operations: ['users.add.v1', 'users.get.v1'], replies: true, events: ['user.added.v1'] };
    await tool('create', name, '--operations', purpose.operations.join(), '--events', 'user.added.v1', '--queue', 'mail');
    await tool('change', name, '--connections', '7', '--lane', '3');
    const account = { name, ...purpose, lane: 3, connections: 7, channels: 500, queues: [`${name}.mail`] };
    // Other tests have accounts at the same broker.
    expect((await tool('list')).data).toEqual({ accounts: expect.arrayContaining([account]) as unknown });
    await tool('change', name, '--events', 'user.added.v1');
    await expect(tool('change', name, '--lane', '1')).rejects.toThrow(`--lane needs --operations: ${name} has none.`);
  });

  it('of the others are set, when an account is deleted meanwhile', async () => {
    await tool('create', name, '--operations', 'users.add.v1');
    const put = jest.spyOn(api, 'put').mockImplementation(async (path, body) => {
      if (path.startsWith(`user-limits/${name}/`)) await broker.management.delete(`users/${name}`).catch(() => undefined);
      return ManagementApi.prototype.put.call(api, path, body);
    });
    await expect(boundEverybody(api)).resolves.toBeGreaterThan(0);
    expect(put.mock.calls.map(([path]) => path)).toContain(`user-limits/${name}/max-connections`);
  });

  it('end queries of the lanes after 30 s, and nothing else', async () => {
    await boundEverybody(api);
    const queues = async () =>
      (await api.get<{ name: string; effective_policy_definition?: object }[]>(`queues/${api.vhost}`)) ?? [];
    const ending = async () =>
      (await queues())
        .filter(({ effective_policy_definition: policy = {} }) => 'message-ttl' in policy)
        .map(({ name, effective_policy_definition: policy }) => [name, policy]);
    const names = ['users', 'notifications'].flatMap((service) =>
      ['', '.1', '.2', '.3'].map((lane) => `${service}.queries${lane}`),
    );
    await eventually(async () => (await ending()).length >= names.length);
    expect(Object.fromEntries(await ending())).toEqual(
      Object.fromEntries(names.map((name) => [name, { 'message-ttl': 30_000 }])),
    );
  });

  it('are deleted with the account and its queues', async () => {
    const policies = async () => (await api.get<{ name: string }[]>(`operator-policies/${api.vhost}`)) ?? [];
    await tool('create', name, '--events', 'user.added.v1');
    expect(await policies()).toMatchObject([{ name: `collaboration.listener.${name}` }]);
    await tool('delete', name, '--queues');
    expect(await policies()).toEqual([]);
  });

  /** The broker counts a connection some time after it has accepted it, so one too many may be accepted at first. */
  async function connectionIsRefused(url: unknown): Promise<boolean> {
    const accepted = await openConnection({ url: url as string, name: 'test' }).catch(() => undefined);
    await accepted?.close();
    return !accepted;
  }

  /** Publishes numbered messages, in portions that the broker confirms. */
  async function publishMany(channel: ConfirmChannel, key: string): Promise<void> {
    for (let count = 0; count < TOO_MANY; count++) {
      channel.publish('events', key, Buffer.from(String(count)));
      if (count % 10_000 === 0) await channel.waitForConfirms();
    }
    await channel.waitForConfirms();
  }
});
