import { connect } from 'amqplib';
import { boundEverybody } from '@app/rabbitmq-admin/accounts/limits';
import { ManagementApi } from '@app/rabbitmq-admin/management-api';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { commandQueue, deadQueue } from '@app/rabbitmq/topology/topology';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { Findings } from '../finding';
import { lookByManagement } from './management';

describe('the look at a broker that collects no figures', () => {
  const letters = deadQueue('users');
  const waiting = commandQueue('users', 0);
  let broker: PrivateServer;

  beforeAll(async () => {
    broker = await PrivateServer.start('rabbitmq', '--management');
    // As `management_agent.disable_metrics_collector = true`, and as RabbitMQ 4 without the permission of management_metrics_collection.
    await broker.order('rabbitmqctl eval application:set_env(rabbitmq_management_agent,disable_metrics_collector,true).');
    await declareTopology(broker.url);
    await boundEverybody(new ManagementApi(broker.managementUrl, broker.url));
    const connection = await connect(broker.url);
    const channel = await connection.createConfirmChannel();
    for (const queue of [letters, waiting]) channel.sendToQueue(queue, Buffer.from('{}'), { persistent: true });
    await channel.waitForConfirms();
    await connection.close();
  });
  afterAll(() => broker?.remove());

  it('finds letters all the same, and says what it does not know', async () => {
    // The lengths of quorum queues are seconds old.
    await eventually(async () => {
      const queues = await broker.management.get<{ messages?: number }[]>('queues/%2F?enable_queue_totals=true');
      return queues.filter(({ messages }) => messages === 1).length === 2;
    });
    const findings = new Findings('broker');
    await lookByManagement(findings, new ManagementApi(broker.managementUrl, broker.url), {});
    expect(findings.all.filter(({ subject }) => subject !== 'replicas')).toMatchObject([
      { state: 'skipped', subject: 'alarms of nodes and consumers of queues' },
      { state: 'ok', subject: 'nodes', found: '1 of 1 run' },
      { state: 'ok', subject: 'feature flags' },
      { state: 'warning', subject: `queue ${letters}`, found: 'has 1 letter' },
      { state: 'ok', subject: 'policies' },
      { state: 'ok', subject: 'exchanges' },
      { state: 'ok', subject: 'connections' },
    ]);
  });
});
