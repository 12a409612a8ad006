import { connect } from 'amqplib';
import { ManagementApi } from '@app/rabbitmq-admin/management-api';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { requiredEnv } from '@app/testing/required-env';
import { Findings } from '../finding';
import { lookByManagement } from './management';

/** The broker tells the figures of quorum queues every five seconds. */
const FIGURES_MS = 30_000;

describe('the look at queues that are nearly full', () => {
  let broker: TestBroker;
  let api: ManagementApi;

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    api = new ManagementApi(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'), broker.url);
  });
  afterAll(() => broker?.drop());

  async function fill(queue: string, bodies: readonly Buffer[], limits?: object): Promise<void> {
    const connection = await connect(broker.url);
    const channel = await connection.createConfirmChannel();
    if (limits) await channel.assertQueue(queue, { arguments: limits });
    for (const body of bodies) channel.sendToQueue(queue, body);
    await channel.waitForConfirms();
    await connection.close();
  }
  const look = async () => {
    const findings = new Findings('broker');
    await lookByManagement(findings, api, {});
    return findings.all
      .filter(({ subject }) => /^queues? /.test(subject))
      .map(({ state, subject, found }) => `${state} ${subject}: ${found}`);
  };
  const finds = (line: string) =>
    eventually(async () => expect(await look()).toContainEqual(expect.stringContaining(line)) === undefined, FIGURES_MS, 500);

  it('warns of those of other services, which drop their oldest message', async () => {
    const some = (count: number) => Array.from({ length: count }, () => Buffer.from('{}'));
    await fill('shop.calm', some(5), { 'x-max-length': 10 });
    await fill('shop.events', some(6), { 'x-max-length': 10 });
    await finds(
      'warning queues of other services: shop.events has 6 messages of at most 10, and a full queue loses or refuses messages; more than half full: 1 queue',
    );
  });

  it('finds those of this system that few large messages fill', async () => {
    const body = Buffer.alloc(1000);
    const definition = { 'max-length-bytes': 1500 };
    await broker.management.put(`policies/${api.vhost}/small`, {
      pattern: '^users.commands.1$',
      definition,
      'apply-to': 'queues',
    });
    await fill('users.commands.1', [body]);
    await finds('problem queue users.commands.1: has 1000 bytes of at most 1500');
  });
});
