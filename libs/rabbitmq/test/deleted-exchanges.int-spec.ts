import { randomUUID } from 'node:crypto';
import { AddUsers } from '@app/contracts/users.add';
import { ApiKeyRevoked } from '@app/contracts/events.users';
import { eventually } from '@app/testing/eventually';
import { EventSubscriber } from '../src/events/event.subscriber';
import { declareTopology } from '../src/topology/declare-topology';
import { BODY, CALL, failure, StubbedUsers, unexpected } from './stubbed-users';

/** The bindings of a queue go with its exchange, and set-up knows nothing of queues that a process has made for itself. */
describe('an exchange that was deleted by hand and is declared again', () => {
  let users: StubbedUsers;

  beforeAll(async () => {
    users = await StubbedUsers.start({ add: () => ({}), authenticate: unexpected, exists: unexpected });
  });
  afterAll(() => users?.close());

  const isMissing = (exchange: string) => `the exchange ${exchange} does not exist in the broker: run "npm run setup"`;

  it('replies: calls are refused at once meanwhile, and then answered', async () => {
    await users.channel.deleteExchange('replies');
    await eventually(() => users.client.check() === isMissing('replies'));
    expect((await failure(users.client.call(AddUsers, BODY, { ...CALL, timeoutMs: 500 }))).status).toBe('UNAVAILABLE');
    await declareTopology(users.broker.url);
    await eventually(() => users.client.check() === undefined && users.server.check() === undefined);
    await users.expectEverythingWorks();
  });

  it('replies, again before a process looks: one call has no answer, and then all of them have', async () => {
    const { channel, client } = users;
    await Promise.all([channel.deleteExchange('replies'), channel.assertExchange('replies', 'direct', { durable: true })]);
    const call = () => client.call(AddUsers, BODY, { ...CALL, timeoutMs: 500 });
    expect((await failure(call())).status).toBe('DEADLINE_EXCEEDED');
    await eventually(call);
    await users.expectEverythingWorks();
  });

  it('events.own: a process hears them again', async () => {
    const heard: string[] = [];
    const subscriber = new EventSubscriber({
      connection: { url: users.broker.url, name: 'gateway' },
      event: ApiKeyRevoked,
      onEvent: ({ apiKey }) => heard.push(apiKey),
      metrics: users.metrics,
    });
    subscriber.start();
    await eventually(() => subscriber.check() === undefined);
    await users.channel.deleteExchange('events.own');
    await eventually(() => subscriber.check() === isMissing('events.own'));
    await declareTopology(users.broker.url);
    await eventually(() => subscriber.check() === undefined);
    const event = { data: { apiKey: 'key', reason: 'disabled' } };
    users.channel.publish('events.own', ApiKeyRevoked.type, Buffer.from(JSON.stringify(event)), { messageId: randomUUID() });
    await eventually(() => heard.length === 1);
    await subscriber.close();
  });
});
