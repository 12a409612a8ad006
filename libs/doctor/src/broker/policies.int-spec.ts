import { run } from '@app/rabbitmq-admin/accounts/run';
import { readCommandLine } from '@app/rabbitmq-admin/accounts/command-line';
import { boundEverybody } from '@app/rabbitmq-admin/accounts/limits';
import { ManagementApi } from '@app/rabbitmq-admin/management-api';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { QUEUES } from '@app/rabbitmq/topology/topology';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { requiredEnv } from '@app/testing/required-env';
import { Findings } from '../finding';
import { lookByManagement } from './management';
import { lookAtPolicies } from './policies';

describe('the look at policies', () => {
  const account = `listens-${Math.random().toString(36).slice(2, 8)}`;
  let broker: TestBroker;
  let api: ManagementApi;

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    api = new ManagementApi(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'), broker.url);
    await boundEverybody(api);
    await run(api, broker.url, readCommandLine(['create', account, '--events', 'user.added.v1'])!);
  });
  afterAll(async () => {
    await broker?.management.delete(`users/${account}`).catch(() => undefined);
    await broker?.drop();
  });

  const look = async () => {
    const findings = new Findings('broker');
    await lookByManagement(findings, api, {});
    return findings.all.filter(({ subject }) => subject.includes('polic')).map(({ subject, found }) => `${subject}: ${found}`);
  };
  const finds = (...lines: unknown[]) =>
    eventually(async () => {
      expect(await look()).toEqual(lines);
      return true;
    });
  const ALL_WELL = 'policies: those of set-up exist, and no other one changes what a queue keeps';

  it('finds those of set-up missing that were deleted by hand', async () => {
    await finds(ALL_WELL);
    const names = ['collaboration.replies', 'collaboration.queries', `collaboration.listener.${account}`];
    for (const name of names) await broker.management.delete(`operator-policies/${api.vhost}/${name}`);
    await finds(...names.map((name) => expect.stringContaining(`operator policy ${name}: does not exist`) as string));
    await boundEverybody(api);
    await finds(ALL_WELL);
  });

  it('finds one that makes queues of this system lose messages, and no other one', async () => {
    const put = (definition: object) =>
      broker.management.put(`policies/${api.vhost}/by-hand`, { pattern: '.*', definition, 'apply-to': 'queues' });
    // Longer than any queue of this system may be.
    await put({ 'max-length': 10_000_000 });
    await finds(ALL_WELL);
    await put({ 'message-ttl': 60_000, 'max-length': 15_000 });
    await finds(
      expect.stringMatching(
        /^policy by-hand: sets message-ttl, max-length of \d+ queues of this system, \S+ for one: commands are/,
      ),
    );
    await put({ overflow: 'drop-head' });
    await finds(expect.stringMatching(/^policy by-hand: sets overflow of \d+ queues of this system, \S+ for one: commands are/));
    await broker.management.delete(`policies/${api.vhost}/by-hand`);
    await finds(ALL_WELL);
  });

  it('finds one of set-up that was changed by hand', async () => {
    const changed = { pattern: '^users\\.queries$', definition: { 'message-ttl': 5000 }, 'apply-to': 'queues', priority: 1 };
    await broker.management.put(`operator-policies/${api.vhost}/collaboration.queries`, changed);
    await finds(
      expect.stringMatching(/^policy collaboration\.queries: sets message-ttl of 1 queue of this system, users\.queries /),
    );
    await boundEverybody(api);
    await finds(ALL_WELL);
  });

  it('knows that -1 is no limit, in RabbitMQ 4', async () => {
    const findings = new Findings('broker');
    // An earlier version refuses such a policy.
    const queues = QUEUES.map(({ name }) => ({ name, policy: 'p', effective_policy_definition: { 'delivery-limit': -1 } }));
    await lookAtPolicies(findings, api, { queues, accounts: [] });
    expect(findings.all).toMatchObject([{ state: 'ok' }]);
  });
});
