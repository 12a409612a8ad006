import { Registry } from 'prom-client';
import { Exists } from '@app/contracts/users.exists';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import type { RabbitServer } from '@app/rabbitmq/server/rabbit.server';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { startUsersStub } from '@app/testing/system/users-stub';
import { askUsers } from './ask-users';

const CONTEXT = { apiKey: 'key', requestId: 'request-1' };
const FOUND = { apiKey: true, organization: false, document: false };

describe(askUsers.name, () => {
  const metrics = new Registry();
  const unused = () => ({});
  let broker: TestBroker;
  let users: RabbitServer;
  let client: RabbitClient;

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    users = await startUsersStub(
      { connection: { url: broker.url, name: 'users' }, metrics },
      { add: unused, authenticate: unused, exists: () => FOUND },
    );
    await eventually(() => users.check() === undefined);
  });
  beforeEach(() => {
    client = new RabbitClient({ connection: { url: broker.url, name: 'notifications' }, metrics });
  });
  afterEach(() => client.close());
  afterAll(async () => {
    await users?.close();
    await broker?.drop();
  });

  it('waits for its connection: after a start, commands may arrive before it is open', async () => {
    const asked = askUsers(client, Exists, {}, CONTEXT);
    await client.connect();
    await expect(asked).resolves.toEqual(FOUND);
  });

  it('throws UNAVAILABLE when there is no connection for two seconds', async () => {
    const from = performance.now();
    await expect(askUsers(client, Exists, {}, CONTEXT)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    expect(performance.now() - from).toBeGreaterThan(1990);
  });
});
