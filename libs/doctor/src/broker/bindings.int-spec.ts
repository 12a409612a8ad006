import type { ChannelModel } from 'amqplib';
import { openConnection } from '@app/amqp/connection/open-connection';
import { readCommandLine } from '@app/rabbitmq-admin/accounts/command-line';
import { run } from '@app/rabbitmq-admin/accounts/run';
import { ManagementApi } from '@app/rabbitmq-admin/management-api';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { requiredEnv } from '@app/testing/required-env';
import { Findings } from '../finding';
import { lookByManagement } from './management';

describe('the look at bindings', () => {
  const account = `binds-${Math.random().toString(36).slice(2, 8)}`;
  let broker: TestBroker;
  let api: ManagementApi;
  let model: ChannelModel | undefined;

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    api = new ManagementApi(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'), broker.url);
  });
  afterAll(async () => {
    await model?.close();
    await broker?.management.delete(`users/${account}`).catch(() => undefined);
    await broker?.drop();
  });

  const problems = async () => {
    const findings = new Findings('broker');
    await lookByManagement(findings, api, {});
    const found = findings.all.filter(({ state, subject }) => state === 'problem' && !subject.includes('policy'));
    return Object.fromEntries(found.map(({ subject, found: text }) => [subject, text]));
  };
  const look = async () => {
    const findings = new Findings('broker');
    await lookByManagement(findings, api, {});
    return findings.all.filter(({ subject }) => subject.startsWith('exchange '));
  };

  it('finds exchanges and bindings missing that were deleted by hand, and listeners that set-up does not bind again', async () => {
    const listener = `listens-${account}`;
    const request = ['create', listener, '--events', 'user.added.v1,user.removed.v1'];
    await run(api, broker.url, readCommandLine(request)!);
    const admin = await openConnection({ url: broker.url, name: 'test' });
    try {
      expect(await problems()).toEqual({});
      const channel = await admin.createChannel();
      await channel.unbindQueue('users.calls', 'calls', 'users.add.v1');
      await channel.unbindQueue('notifications.events', 'events.own', 'user.removed.v1');
      for (const exchange of ['commands.3', 'events']) await channel.deleteExchange(exchange);
      expect(await problems()).toEqual({
        'exchange calls': 'lacks 1 binding: users.add.v1 does not reach users.calls, for one',
        'exchange events.own': 'lacks 1 binding: user.removed.v1 does not reach notifications.events, for one',
        'exchange commands.3': 'does not exist',
        'exchange events': 'does not exist',
        [`account ${listener}`]: 'listens to user.added.v1, user.removed.v1, and no queue of it gets them',
      });
      await declareTopology(broker.url);
      expect(Object.keys(await problems())).toEqual([`account ${listener}`]);
      // As an account made before 0.2.
      const declares = { configure: `^${listener}\\..*$`, write: '^$', read: '^$' };
      await broker.management.put(`permissions/${api.vhost}/${listener}`, declares);
      expect(await problems()).toEqual({});
      await run(api, broker.url, readCommandLine(['change', ...request.slice(1)])!);
      expect(await problems()).toEqual({});
    } finally {
      await admin.close();
      await broker.management.delete(`users/${listener}`);
    }
  });

  it('warns of those that an account has made between exchanges, and of no others', async () => {
    const request = [
      'create',
      account,
      '--operations',
      'access.check.v1',
      '--replies',
      '--lane',
      '2',
      '--events',
      'user.added.v1',
    ];
    const { url } = (await run(api, broker.url, readCommandLine(request)!)).data;
    model = await openConnection({ url: url as string, name: 'test' });
    const channel = await model.createChannel();
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, 'replies', queue);
    expect(await look()).toEqual([]);
    const warning = (found: string) => [
      { state: 'warning', subject: 'exchange commands.2', found: expect.stringContaining(found) as string },
    ];
    await channel.bindExchange('commands.2', `${account}.events.dead`, '');
    expect(await look()).toMatchObject(warning(`is bound 1 time to other exchanges, ${account}.events.dead for one`));
    for (const key of ['a', 'b']) await channel.bindExchange('commands.2', 'replies', key);
    expect(await look()).toMatchObject(warning('is bound 3 times to other exchanges'));
  });
});
