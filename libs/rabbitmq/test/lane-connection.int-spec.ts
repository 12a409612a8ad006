import type { ChannelModel } from 'amqplib';
import { Registry } from 'prom-client';
import { openConnection } from '@app/amqp/connection/open-connection';
import { AddUsers } from '@app/contracts/users.add';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { FaultProxy } from '../../../test/faults/harness/fault-proxy';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import { declareTopology } from '../src/topology/declare-topology';
import { BODY, CALL } from './stubbed-users';

const MARK = 'the command that does not arrive';

/** A body of a lane occupies the socket until it has arrived. */
describe('a command of a lane that is on its way to a service', () => {
  let broker: TestBroker;
  let proxy: FaultProxy;
  let publisher: ChannelModel;
  let client: RabbitClient;
  let server: RabbitServer;
  const handled: (string | undefined)[] = [];
  const handlers = { add: (_, { messageId }) => (handled.push(messageId), {}) } as UsersHandlers;

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    const { hostname: host, port } = new URL(broker.url);
    proxy = await FaultProxy.start({ host, port: Number(port) });
    publisher = await openConnection({ url: broker.url, name: 'publisher' });
    client = new RabbitClient({ connection: { url: broker.url, name: 'gateway' }, metrics: new Registry() });
    await client.connect();
    server = await startUsersStub(
      { connection: { url: proxy.through(broker.url), name: 'users' }, metrics: new Registry(), drainTimeoutMs: 200 },
      handlers,
    );
    await eventually(() => server.check() === undefined && client.check() === undefined);
  });
  afterAll(async () => {
    await client?.close();
    await server?.close();
    await publisher?.close();
    await proxy?.close();
    await broker?.drop();
  });

  it('does not delay calls', async () => {
    let isHeld = false;
    proxy.inspector = (bytes, direction) => {
      if (direction === 'toServer' || isHeld || !bytes.includes(MARK)) return 'pass';
      isHeld = true;
      return 'hold';
    };
    const channel = await publisher.createChannel();
    const options = { messageId: MARK, headers: { 'x-api-key': CALL.apiKey } };
    channel.publish('commands.2', AddUsers.pattern, Buffer.from(JSON.stringify(BODY)), options);
    await eventually(() => isHeld);
    expect((await client.call(AddUsers, BODY, CALL)).parse()).toEqual({});
    expect(handled).not.toContain(MARK);
    proxy.heal();
    await eventually(() => handled.includes(MARK));
  });
});
