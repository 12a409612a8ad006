import { requiredEnv } from '@app/testing/required-env';
import { createTestBroker } from '@app/testing/broker/broker';
import { ManagementApi } from './management-api';

describe(ManagementApi.name, () => {
  it('uses the first node that can be reached', async () => {
    const broker = await createTestBroker();
    const url = requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL').replace(/@/, '@127.0.0.1:2,');
    const api = new ManagementApi(url, broker.url);
    expect(await api.get(`exchanges/${api.vhost}/amq.topic`)).toMatchObject({ name: 'amq.topic' });
    await broker.drop();
  });

  it('names each node with its reason when none can be reached, without the password', async () => {
    const api = new ManagementApi('http://127.0.0.1:2,127.0.0.2:2', 'amqp://user:secret@127.0.0.1');
    await expect(api.get('users')).rejects.toThrow(
      /^the management API cannot be reached: 127\.0\.0\.1:2: ECONNREFUSED; 127\.0\.0\.2:2: ECONNREFUSED$/,
    );
  });
});
