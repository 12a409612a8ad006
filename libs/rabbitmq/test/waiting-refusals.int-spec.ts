import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { Registry } from 'prom-client';
import { openConnection } from '@app/amqp/connection/open-connection';
import { ApiError } from '@app/contracts/error';
import { AddUsers } from '@app/contracts/users.add';
import { eventually } from '@app/testing/eventually';
import { metricValue } from '@app/testing/metric-value';
import { PrivateServer } from '@app/testing/system/private-server';
import { startUsersStub } from '@app/testing/system/users-stub';
import type { RabbitServer } from '../src/server/rabbit.server';
import { declareTopology } from '../src/topology/declare-topology';
import { BODY, unexpected } from './stubbed-users';

const LANE = 'users.commands.0';
const ANSWERS = 'answers';
const COMMANDS = 500;
const PLACES = 4;
/** Longer than a few hundred commands take. */
const LOOK_EVERY_MS = 300;

/** In an alarm the broker goes on to deliver. */
describe('refusals while the broker takes no replies', () => {
  let broker: PrivateServer;
  let publisher: ChannelModel;
  let channel: ConfirmChannel;
  let server: RabbitServer | undefined;
  const metrics = new Registry();

  beforeAll(async () => {
    broker = await PrivateServer.start('rabbitmq');
    await declareTopology(broker.url);
    publisher = await openConnection({ url: broker.url, name: 'publisher' });
    channel = await publisher.createConfirmChannel();
  });
  afterAll(async () => {
    await server?.close();
    await publisher?.close();
    await broker?.remove();
  });

  const lengthOf = async (queue: string) => (await channel.checkQueue(queue)).messageCount;

  it('keep their places, and do not fill the memory of the service', async () => {
    await channel.assertQueue(ANSWERS, { durable: false, arguments: { 'x-queue-type': 'classic' } });
    await channel.bindQueue(ANSWERS, 'replies', ANSWERS);
    const headers = { 'x-api-key': 'key', 'x-deadline': Date.now() + 600_000 };
    for (let number = 0; number < COMMANDS; number++)
      channel.publish('commands', AddUsers.pattern, Buffer.from(JSON.stringify(BODY)), {
        persistent: true,
        correlationId: String(number),
        replyTo: ANSWERS,
        headers,
      });
    await channel.waitForConfirms();
    await broker.order('memory alarm on');

    const add = () => {
      throw new ApiError('NOT_FOUND', 'No such organization.');
    };
    const options = { connection: { url: broker.url, name: 'users' }, prefetch: { commands: PLACES, queries: PLACES }, metrics };
    server = await startUsersStub(options, { add, authenticate: unexpected, exists: unexpected });
    await eventually(async () => (await metricValue(metrics, 'rabbitmq_blocked')) > 0);
    let waiting = COMMANDS;
    const standsStill = async () => waiting === (waiting = await lengthOf(LANE));
    await eventually(standsStill, undefined, LOOK_EVERY_MS);
    expect(waiting).toBeGreaterThan(0);
    // Some were acknowledged before the service knew of the alarm.
    expect(await metricValue(metrics, 'rabbitmq_deliveries_in_flight')).toBeLessThanOrEqual(2 * PLACES);

    await broker.order('memory alarm off');
    await eventually(async () => (await lengthOf(ANSWERS)) === COMMANDS);
  });
});
