import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { AddUsers } from '@app/contracts/users.add';
import { Exists } from '@app/contracts/users.exists';
import { RabbitClient } from './rabbit.client';

const connection = { url: 'amqp://localhost', name: 'test' };

describe('the calls of a RabbitClient', () => {
  it('are messages whose declarations name the process, which fails at start otherwise', () => {
    expect(() => new RabbitClient({ connection, calls: { as: 'notifications', messages: [Exists, AddUsers] } })).toThrow(
      'The broker refuses users.add.v1 of notifications: its declaration does not name notifications among its callers.',
    );
  });

  it('are the ones that the process has named', async () => {
    const client = new RabbitClient({ connection, calls: { as: 'notifications', messages: [Exists] } });
    const call = client.call(AddUsers, AddUsers.example.request, { requestId: randomUUID(), timeoutMs: 1000 });
    await expect(call).rejects.toThrow('users.add.v1 is not among the messages that notifications calls.');
  });

  it('are no messages while nothing can be written', async () => {
    const metrics = new Registry();
    // Never started, so it has no connection.
    const client = new RabbitClient({ connection, metrics });
    const call = client.call(AddUsers, AddUsers.example.request, { apiKey: 'key', requestId: randomUUID(), timeoutMs: 5000 });
    await expect(call).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    await client.close();
    expect(await metrics.getSingleMetricAsString('rabbitmq_commands_per_message')).not.toContain('_count{');
  });
});
