import type { ChannelModel } from 'amqplib';
import { openConnection } from '@app/amqp/connection/open-connection';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { requiredEnv } from '@app/testing/required-env';
import { ManagementApi } from './management-api';
import { lastingQueues, queuePage, queuesOfConnections } from './queue-pages';

const NAMES = ['a', 'amq', 'b.amq.gen-', 'c'];

describe('pages of queues', () => {
  let broker: TestBroker;
  let model: ChannelModel | undefined;
  let api: ManagementApi;

  beforeAll(async () => {
    broker = await createTestBroker();
    api = new ManagementApi(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'), broker.url);
  });
  afterAll(async () => {
    await model?.close();
    await broker?.drop();
  });

  it('have every queue but those that the broker has named, in the order of their names', async () => {
    expect([await lastingQueues(api), await queuesOfConnections(api)]).toEqual([[], 0]);
    model = await openConnection({ url: broker.url, name: 'test' });
    const channel = await model.createChannel();
    for (const name of NAMES.toReversed()) await channel.assertQueue(name);
    for (let replies = 0; replies < 3; replies++) await channel.assertQueue('', { exclusive: true });
    expect(await queuesOfConnections(api)).toBe(3);
    expect(await lastingQueues(api)).toMatchObject(NAMES.map((name) => ({ name })));
    const first = await queuePage<{ name: string }>(api, 1, 3);
    expect(first).toMatchObject({ filtered_count: NAMES.length, page_count: 2 });
    expect(first.items.map(({ name }) => name)).toEqual(NAMES.slice(0, 3));
    expect((await queuePage<{ name: string }>(api, 2, 3)).items.map(({ name }) => name)).toEqual(NAMES.slice(3));
  });

  it('are not taken for empty where there is no API', async () => {
    const nowhere = new ManagementApi(`${requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL')}/api`, broker.url);
    await expect(queuePage(nowhere, 1, 3)).rejects.toThrow('the management API answered 404 to GET queues/');
  });
});
