import { ManagementApi } from '@app/rabbitmq-admin/management-api';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { requiredEnv } from '@app/testing/required-env';
import { Findings } from '../finding';
import { lookByManagement } from './management';

describe('the look by a management API that refuses some questions', () => {
  const monitor = `monitor-${Math.random().toString(36).slice(2, 8)}`;
  let broker: TestBroker;

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    await broker.management.put(`users/${monitor}`, { password: 'secret', tags: 'monitoring' });
    const rights = { configure: '.*', write: '.*', read: '.*' };
    await broker.management.put(`permissions/${new URL(broker.url).pathname.slice(1)}/${monitor}`, rights);
  });
  afterAll(async () => {
    await broker?.management.delete(`users/${monitor}`);
    await broker?.drop();
  });

  it('says what was refused, and finds the rest', async () => {
    const url = new URL(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'));
    url.username = monitor;
    url.password = 'secret';
    const findings = new Findings('broker');
    await lookByManagement(findings, new ManagementApi(url.href, broker.url), { gateway: broker.url, users: broker.url });
    const states = Object.fromEntries(findings.all.map(({ subject, state }) => [subject, state]));
    expect(states).toMatchObject({ queues: 'ok', 'rights of gateway': 'problem', 'rights of users': 'problem' });
    const refused = findings.all.find(({ subject }) => subject === 'rights of users');
    expect(refused?.found).toMatch(/^the management API answered 401 to GET permissions/);
    expect(refused?.action).toContain('administrator');
  });

  it('takes an address at which there is no API for a problem', async () => {
    const findings = new Findings('broker');
    await lookByManagement(findings, new ManagementApi(`${requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL')}/api`, broker.url), {});
    expect(findings.all).toMatchObject([
      { state: 'problem', subject: 'management API', found: 'the management API answered 404 to GET nodes' },
    ]);
  });
});
