import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { openConnection } from '@app/amqp/connection/open-connection';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { declareTopology } from './declare-topology';
import { finishUpgrade } from './finish-upgrade';
import { FaultProxy } from '../../../../test/faults/harness/fault-proxy';

const EARLIER = 'users.commands.retry.5m';
/** Method frames: the numbers of class and method. */
const GET = Buffer.from([0, 60, 0, 70]);
const DELETE = Buffer.from([0, 50, 0, 40]);

describe('the end of an upgrade beside a queue whose leader does not answer', () => {
  let broker: PrivateServer;
  let proxy: FaultProxy;
  let model: ChannelModel;
  let channel: ConfirmChannel;

  beforeAll(async () => {
    broker = await PrivateServer.start('rabbitmq');
    await declareTopology(broker.url);
    proxy = await FaultProxy.to(broker.url);
    model = await openConnection({ url: proxy.through(broker.url), name: 'test' });
    channel = await model.createConfirmChannel();
    await channel.assertQueue(EARLIER, { arguments: { 'x-queue-type': 'quorum' } });
    channel.sendToQueue(EARLIER, Buffer.from('{}'), { persistent: true });
    await channel.waitForConfirms();
  });
  afterAll(async () => {
    await model?.close();
    await proxy?.close();
    await broker?.remove();
  });

  it('does not delete it with its commands', async () => {
    await broker.queues('suspend', EARLIER);
    // The broker says so meanwhile.
    expect((await channel.checkQueue(EARLIER)).messageCount).toBe(0);
    let decides = false;
    proxy.inspector = (bytes) => {
      decides ||= bytes.includes(EARLIER) && (bytes.includes(GET) || bytes.includes(DELETE));
      return 'pass';
    };
    const finished = finishUpgrade(model);
    await eventually(() => decides);
    await broker.queues('resume', EARLIER);
    expect(await finished).toEqual([EARLIER]);
    await eventually(async () => (await channel.checkQueue(EARLIER)).messageCount === 1);
  });

  it('gives up beside an alarm of the broker, and leaves the messages where they are', async () => {
    const suspects = 'users.commands.suspects';
    await channel.assertQueue(suspects, { arguments: { 'x-queue-type': 'quorum' } });
    channel.sendToQueue(suspects, Buffer.from('{}'), { persistent: true });
    await channel.waitForConfirms();
    await broker.order('memory alarm on');
    await expect(declareTopology(broker.url, { upgraded: true, stepMs: 2000 })).rejects.toThrow(
      /the confirm of a message for queue \S+ took over 2 s/,
    );
    await eventually(async () => (await channel.checkQueue(suspects)).messageCount === 1);
    await broker.order('memory alarm off');
  });
});
