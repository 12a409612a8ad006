import type { ChannelModel } from 'amqplib';
import { Registry } from 'prom-client';
import { openConnection } from '@app/amqp/connection/open-connection';
import { AddUsers } from '@app/contracts/users.add';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { startUsersStub } from '@app/testing/system/users-stub';
import { CHANNEL_CLOSE, FaultProxy, type Link } from '../../../test/faults/harness/fault-proxy';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import { declareTopology } from '../src/topology/declare-topology';
import { BODY, CALL, unexpected } from './stubbed-users';

const SILENT = 'silent.replies';

/** As on a node that stands still: the broker has the reply and confirms it never, while the connection goes on. */
describe('a reply queue that confirms nothing', () => {
  let broker: PrivateServer;
  let proxy: FaultProxy;
  let publisher: ChannelModel;
  let client: RabbitClient;
  let server: RabbitServer;
  let onAdd: (redelivered: boolean) => void = () => undefined;

  const still = (what: 'suspend' | 'resume') =>
    broker.order(
      `rabbitmqctl eval sys:${what}(amqqueue:get_pid(element(2,rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>,queue,<<"${SILENT}">>))))).`,
    );

  beforeAll(async () => {
    broker = await PrivateServer.start('rabbitmq');
    await declareTopology(broker.url);
    const { hostname: host, port } = new URL(broker.url);
    proxy = await FaultProxy.start({ host, port: Number(port) });
    publisher = await openConnection({ url: broker.url, name: 'publisher' });
    client = new RabbitClient({ connection: { url: broker.url, name: 'gateway' }, metrics: new Registry() });
    await client.connect();
    const connection = { url: proxy.through(broker.url), name: 'users' };
    server = await startUsersStub(
      { connection, confirmReplies: true, metrics: new Registry() },
      { authenticate: unexpected, exists: unexpected, add: (_, { redelivered }) => (onAdd(redelivered), {}) },
    );
    await eventually(() => server.check() === undefined && client.check() === undefined);
  });
  afterAll(async () => {
    await client?.close();
    await server?.close();
    await publisher?.close();
    await proxy?.close();
    await broker?.remove();
  });

  it('costs other callers nothing while another channel takes the place of the one that waits for it', async () => {
    const channel = await publisher.createConfirmChannel();
    await channel.assertQueue(SILENT, { durable: false, arguments: { 'x-queue-type': 'classic' } });
    await channel.bindQueue(SILENT, 'replies', SILENT);
    await still('suspend');
    const isClosing = new Promise<void>((resolve) => {
      let closing: Link | undefined;
      proxy.inspector = (bytes, direction, link) => {
        if (direction === 'toServer' && bytes.includes(CHANNEL_CLOSE)) resolve(void (closing = link));
        return link === closing && direction === 'toClient' ? 'hold' : 'pass';
      };
    });
    const properties = { persistent: true, headers: { 'x-api-key': CALL.apiKey }, correlationId: '1', replyTo: SILENT };
    channel.publish('commands', AddUsers.pattern, Buffer.from(JSON.stringify(BODY)), properties);
    await isClosing;

    const handled = new Promise<boolean>((resolve) => (onAdd = resolve));
    const answer = client.call(AddUsers, BODY, CALL);
    const redelivered = await handled;
    // Its reply is written in this turn of the event loop.
    await new Promise(setImmediate);
    proxy.heal();
    expect((await answer).parse()).toEqual({});
    expect(redelivered).toBe(false);
    await still('resume');
    await eventually(async () => (await channel.checkQueue(SILENT)).messageCount === 1);
  });
});
