import { once } from 'node:events';
import type { Channel, ChannelModel } from 'amqplib';
import { RabbitConnection } from '@app/amqp/connection/connection';
import { silent } from '@app/amqp/connection/observer';
import { openConnection } from '@app/amqp/connection/open-connection';
import { encodeReply } from '@app/amqp/messages/reply-format';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { ReplyBatcher } from './reply-batcher';

const ANSWERS = 'answers';
const MOST_SILENT_MS = 1000;
/** Longer than the confirm of a reply is waited for: a second, and then this time. */
const LONG_ALARM_MS = 4000;

describe(ReplyBatcher.name, () => {
  let broker: PrivateServer;
  let model: ChannelModel;
  let channel: Channel;

  beforeAll(async () => {
    broker = await PrivateServer.start('rabbitmq');
    model = await openConnection({ url: broker.url, name: 'caller' });
    channel = await model.createChannel();
    await channel.assertExchange('replies', 'direct');
    await channel.assertQueue(ANSWERS, { durable: false, arguments: { 'x-queue-type': 'classic' } });
    await channel.bindQueue(ANSWERS, 'replies', ANSWERS);
  });
  afterAll(async () => {
    await model?.close();
    await broker?.remove();
  });

  it('keeps its channel, and what is written over it, while the broker takes nothing', async () => {
    const connection = new RabbitConnection({ url: broker.url, name: 'users' }, silent);
    const replies = new ReplyBatcher(connection, 'confirmed replies', true, MOST_SILENT_MS);
    connection.start();
    try {
      await eventually(() => replies.check() === undefined);
      await broker.order('memory alarm on');
      const blocked = once(connection, 'state');
      // The broker reads the first one, and no more.
      const answer = encodeReply({ result: {} });
      const sent = [1, 2].map(() => replies.publish({ replyTo: ANSWERS, batches: false }, answer, 60_000));
      expect(await blocked).toEqual(['blocked']);
      await Promise.all(sent);
      await expect(eventually(() => connection.usable.size === 0, LONG_ALARM_MS)).rejects.toThrow();
      await broker.order('memory alarm off');
      await eventually(async () => (await channel.checkQueue(ANSWERS)).messageCount === 2);
    } finally {
      await replies.close();
      await connection.close();
    }
  });
});
