import type { ChannelModel } from 'amqplib';
import { Registry } from 'prom-client';
import { openConnection } from '@app/amqp/connection/open-connection';
import { AddUsers } from '@app/contracts/users.add';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { CHANNEL_CLOSE, type Link } from '../../../test/faults/harness/fault-proxy';
import { BODY, CALL, unexpected } from './stubbed-users';
import { UsersBehindProxy } from './users-behind-proxy';

const SILENT = 'silent.replies';

/** As on a node that stands still: the broker has the reply and confirms it never, while the connection goes on. */
describe('a reply queue that confirms nothing', () => {
  let broker: PrivateServer;
  let publisher: ChannelModel;
  let users: UsersBehindProxy;
  let onAdd: (redelivered: boolean) => void = () => undefined;

  beforeAll(async () => {
    broker = await PrivateServer.start('rabbitmq');
    publisher = await openConnection({ url: broker.url, name: 'publisher' });
    users = await UsersBehindProxy.start(
      broker.url,
      { authenticate: unexpected, exists: unexpected, add: (_, { redelivered }) => (onAdd(redelivered), {}) },
      { confirmReplies: true, metrics: new Registry() },
    );
  });
  afterAll(async () => {
    await users?.close();
    await publisher?.close();
    await broker?.remove();
  });

  it('costs other callers nothing while another channel takes the place of the one that waits for it', async () => {
    const channel = await publisher.createConfirmChannel();
    await channel.assertQueue(SILENT, { durable: false, arguments: { 'x-queue-type': 'classic' } });
    await channel.bindQueue(SILENT, 'replies', SILENT);
    await broker.queues('suspend', SILENT);
    const isClosing = new Promise<void>((resolve) => {
      let closing: Link | undefined;
      users.proxy.inspector = (bytes, direction, link) => {
        if (direction === 'toServer' && bytes.includes(CHANNEL_CLOSE)) resolve(void (closing = link));
        return link === closing && direction === 'toClient' ? 'hold' : 'pass';
      };
    });
    const properties = { persistent: true, headers: { 'x-api-key': CALL.apiKey }, correlationId: '1', replyTo: SILENT };
    channel.publish('commands', AddUsers.pattern, Buffer.from(JSON.stringify(BODY)), properties);
    await isClosing;

    const handled = new Promise<boolean>((resolve) => (onAdd = resolve));
    const answer = users.client.call(AddUsers, BODY, CALL);
    const redelivered = await handled;
    // Its reply is written in this turn of the event loop.
    await new Promise(setImmediate);
    users.proxy.heal();
    expect((await answer).parse()).toEqual({});
    expect(redelivered).toBe(false);
    await broker.queues('resume', SILENT);
    await eventually(async () => (await channel.checkQueue(SILENT)).messageCount === 1);
  });
});
