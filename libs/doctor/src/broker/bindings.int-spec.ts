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

  const look = async () => {
    const findings = new Findings('broker');
    await lookByManagement(findings, api, {});
    return findings.all.filter(({ subject }) => subject.startsWith('exchange '));
  };

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
    expect(await look()).toMatchObject(warning(`is bound 1 times to other exchanges, ${account}.events.dead for one`));
    for (const key of ['a', 'b']) await channel.bindExchange('commands.2', 'replies', key);
    expect(await look()).toMatchObject(warning('is bound 3 times to other exchanges'));
  });
});
