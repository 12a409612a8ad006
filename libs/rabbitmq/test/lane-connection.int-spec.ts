import type { ChannelModel } from 'amqplib';
import { Registry } from 'prom-client';
import { openConnection } from '@app/amqp/connection/open-connection';
import { AddUsers } from '@app/contracts/users.add';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import type { UsersHandlers } from '@app/testing/system/users-stub';
import { BODY, CALL } from './stubbed-users';
import { UsersBehindProxy } from './users-behind-proxy';

const MARK = 'the command that does not arrive';

/** A body of a lane occupies the socket until it has arrived. */
describe('a command of a lane that is on its way to a service', () => {
  let broker: TestBroker;
  let publisher: ChannelModel;
  let users: UsersBehindProxy;
  const handled: (string | undefined)[] = [];
  const handlers = { add: (_, { messageId }) => (handled.push(messageId), {}) } as UsersHandlers;

  beforeAll(async () => {
    broker = await createTestBroker();
    publisher = await openConnection({ url: broker.url, name: 'publisher' });
    users = await UsersBehindProxy.start(broker.url, handlers, { metrics: new Registry(), drainTimeoutMs: 200 });
  });
  afterAll(async () => {
    await users?.close();
    await publisher?.close();
    await broker?.drop();
  });

  it('does not delay calls', async () => {
    let isHeld = false;
    users.proxy.inspector = (bytes, direction) => {
      if (direction === 'toServer' || isHeld || !bytes.includes(MARK)) return 'pass';
      isHeld = true;
      return 'hold';
    };
    const channel = await publisher.createChannel();
    const options = { messageId: MARK, headers: { 'x-api-key': CALL.apiKey } };
    channel.publish('commands.2', AddUsers.pattern, Buffer.from(JSON.stringify(BODY)), options);
    await eventually(() => isHeld);
    expect((await users.client.call(AddUsers, BODY, CALL)).parse()).toEqual({});
    expect(handled).not.toContain(MARK);
    users.proxy.heal();
    await eventually(() => handled.includes(MARK));
  });
});
