import { Registry } from 'prom-client';
import type { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { createTestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { startUsersStub } from '@app/testing/system/users-stub';
import type { OrganizationsRepository } from '../db/organizations.repository';
import { Existence } from './existence';
import { MOST_QUESTIONS } from './questions';

const CALLS = 100;

it('asks for a new tenant as often as calls ask at a time, and not once for each of its first calls', async () => {
  const broker = await createTestBroker();
  await declareTopology(broker.url);
  const metrics = new Registry();
  const unused = () => ({});
  const asked: DeliveryContext[] = [];
  const exists = (_: unknown, context: DeliveryContext) => {
    asked.push(context);
    return { apiKey: true, organization: false, document: false };
  };
  const connection = { url: broker.url, name: 'users' };
  const users = await startUsersStub({ connection, metrics }, { add: unused, authenticate: unused, exists });
  const client = new RabbitClient({ connection: { ...connection, name: 'notifications' }, metrics });
  try {
    await client.connect();
    await eventually(() => users.check() === undefined && client.check() === undefined);
    const unknown = { hasTenant: () => Promise.resolve(false) } as unknown as OrganizationsRepository;
    let attempt = 0;
    // Again when a busy machine answers later than calls wait for their turn.
    const requestId = await eventually(async () => {
      const existence = new Existence(unknown, client);
      const context = { apiKey: 'new', requestId: `attempt ${++attempt}`, awaited: true } as DeliveryContext;
      await Promise.all(Array.from({ length: CALLS }, () => existence.requireTenant(context)));
      return context.requestId;
    });
    // A question without an answer is asked again, with the same id.
    const questions = asked.filter((one) => one.requestId === requestId).map(({ messageId }) => messageId);
    expect(new Set(questions).size).toBe(MOST_QUESTIONS.ofKey);
  } finally {
    await client.close();
    await users.close();
    await broker.drop();
  }
});
