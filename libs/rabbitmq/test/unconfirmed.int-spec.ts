import { Registry } from 'prom-client';
import { ApiError } from '@app/contracts/error';
import { openConnection } from '@app/amqp/connection/open-connection';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { metricValue } from '@app/testing/metric-value';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { BASIC_ACK, FaultProxy, type Link } from '../../../test/faults/harness/fault-proxy';
import type { RabbitServer } from '../src/server/rabbit.server';
import { declareTopology } from '../src/topology/declare-topology';
import { BODY, REFUSED } from './stubbed-users';

const COMMANDS = 20;

/** A queue that has lost its majority confirms nothing, and its broker says no word about it. */
describe('letters that the broker does not confirm', () => {
  let broker: TestBroker;
  let proxy: FaultProxy;
  let server: RabbitServer;
  const metrics = new Registry();
  const handlers = {
    add: () => {
      throw new ApiError('NOT_FOUND', 'No such organization.');
    },
    authenticate: () => ({}),
    exists: () => ({}),
  } as UsersHandlers;

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    proxy = await FaultProxy.to(broker.url);
    let publishing: Link | undefined;
    proxy.inspector = (bytes, direction, link) => {
      if (direction === 'toServer' && bytes.includes('users publishing')) publishing = link;
      return link === publishing && direction === 'toClient' && bytes.includes(BASIC_ACK) ? 'hold' : 'pass';
    };
    const connection = { url: proxy.through(broker.url), name: 'users', unconfirmedMs: 300 };
    server = await startUsersStub({ connection, metrics }, handlers);
    await eventually(() => server.check() === undefined);
  });
  afterAll(async () => {
    await server?.close();
    await proxy?.close();
    await broker?.drop();
  });

  const held = () => metricValue(metrics, 'rabbitmq_letters_held', { queue: 'users.commands.0' });

  it('are counted as held and stop their queue, and are published once', async () => {
    const model = await openConnection({ url: broker.url, name: 'test' });
    try {
      const channel = await model.createConfirmChannel();
      for (let number = 0; number < COMMANDS; number++)
        channel.publish('commands', 'users.add.v1', Buffer.from(JSON.stringify(BODY)), { headers: { 'x-api-key': 'key' } });
      await channel.waitForConfirms();
      await eventually(async () => (await held()) === COMMANDS);
      expect(server.check()).toBe('users.commands.0 is not consumed: the broker does not take its retries and dead letters');
      proxy.heal();
      await eventually(async () => (await held()) === 0);
      await eventually(() => server.check() === undefined);
      expect((await channel.checkQueue(REFUSED)).messageCount).toBe(COMMANDS);
    } finally {
      await model.close();
    }
  });
});
