import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Channel, ChannelModel } from 'amqplib';
import { openConnection } from '@app/amqp/connection/open-connection';
import { HEADER } from '@app/amqp/messages/headers';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { CollaborationClient } from './client';

describe(CollaborationClient.name, () => {
  let broker: TestBroker;
  let model: ChannelModel;
  let channel: Channel;
  let client: CollaborationClient;

  beforeAll(async () => {
    broker = await createTestBroker();
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createChannel();
    for (const exchange of ['commands', 'events']) await channel.assertExchange(exchange, 'topic');
    await channel.assertExchange('replies', 'direct');
  });
  beforeEach(() => {
    client = new CollaborationClient({ url: broker.url, name: 'billing', apiKey: 'key' });
  });
  afterEach(() => client.close(0));
  afterAll(async () => {
    await model?.close();
    await broker?.drop();
  });

  it('calls with the body of the moment of the call', async () => {
    const bodies: unknown[] = [];
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, 'commands', 'users.add.v1');
    const { consumerTag } = await channel.consume(
      queue,
      (message) => {
        bodies.push(JSON.parse(message!.content.toString()));
        const { replyTo, correlationId } = message!.properties as { replyTo: string; correlationId: string };
        channel.publish('replies', replyTo, Buffer.from('{}'), { correlationId, headers: { [HEADER.status]: 'OK' } });
      },
      { noAck: true },
    );
    const body = { organizationId: 'o', users: [{ userId: 'first' }] };
    const first = client.call('users.add.v1', body, { timeoutMs: 30_000 });
    body.users = [{ userId: 'second' }];
    await Promise.all([first, client.call('users.add.v1', body, { timeoutMs: 30_000 })]);
    await channel.cancel(consumerTag);
    expect(bodies).toEqual(['first', 'second'].map((userId) => ({ organizationId: 'o', users: [{ userId }] })));
  });

  it('publishes no query, of which nobody would get the result', async () => {
    const query = client.publish('users.get.v1' as string as 'users.add.v1', { organizationId: 'o', users: [] });
    await expect(query).rejects.toMatchObject({ status: 'INVALID_ARGUMENT', message: 'users.get.v1 is a query: call it.' });
  });

  it('refuses at once an operation that there is not, a number of calls that is none, and a URL that is none', async () => {
    const unknown = 'users.remove.v1' as string as 'users.add.v1';
    for (const sent of [
      client.publish(unknown, { organizationId: 'o', users: [] }),
      client.call(unknown, { organizationId: 'o', users: [] }),
    ])
      await expect(sent).rejects.toMatchObject({ status: 'INVALID_ARGUMENT', message: 'users.remove.v1 is not an operation.' });
    for (const maxPending of [0, NaN])
      expect(() => new CollaborationClient({ url: broker.url, name: 'billing', maxPending })).toThrow(RangeError);
    for (const name of ['', undefined as unknown as string])
      expect(() => new CollaborationClient({ url: broker.url, name })).toThrow('name must have 1 to 200 bytes.');
    expect(() => new CollaborationClient({ url: '', name: 'billing' })).toThrow(/^url must be a URL that starts with amqp/);
  });

  it('connects when it is asked whether it is ready', async () => {
    expect(client.check()).toMatch(/^not connected to the broker/);
    await eventually(() => client.check() === undefined);
  });

  it('lets running handlers publish while it closes, and listens no more', async () => {
    const handlers = { 'user.added.v1': () => undefined };
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, 'commands', 'documents.set.v1');
    const { open: begin, opened: begun } = gate();
    const { open: go, opened: gone } = gate();
    const handler = async () => {
      begin();
      await gone;
      await client.publish('documents.set.v1', { organizationId: 'o', documentId: 'd' });
    };
    await client.listen({ queue: 'closing.events', handlers: { 'user.added.v1': handler }, tries: 1 });
    const event = { specversion: '1.0', id: 'e', source: '/users', type: 'user.added.v1', data: {} };
    channel.publish('events', 'user.added.v1', Buffer.from(JSON.stringify(event)));
    await begun;
    const closed = client.close();
    await expect(client.listen({ queue: 'billing.events', handlers })).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    go();
    await closed;
    expect(await channel.checkQueue(queue)).toMatchObject({ messageCount: 1 });
    expect(await channel.checkQueue('closing.events')).toMatchObject({ messageCount: 0 });
    expect(await channel.checkQueue('closing.events.dead')).toMatchObject({ messageCount: 0 });
  });

  it('stays ready when one of its listeners is closed', async () => {
    const handlers = { 'user.added.v1': () => undefined };
    const listener = await client.listen({ queue: 'billing.events', handlers });
    await eventually(() => client.check() === undefined);
    await listener.close(0);
    expect(client.check()).toBeUndefined();
  });

  it('lets handlers publish while it closes that a closed listener has left at work', async () => {
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, 'commands', 'documents.set.v1');
    const { open: go, opened: gone } = gate();
    const { open: begin, opened: begun } = gate();
    const handler = async () => {
      begin();
      await gone;
      await client.publish('documents.set.v1', { organizationId: 'o', documentId: 'd' });
    };
    const listener = await client.listen({ queue: 'left.events', handlers: { 'user.added.v1': handler } });
    const event = { specversion: '1.0', id: 'left', source: '/users', type: 'user.added.v1', data: {} };
    channel.publish('events', 'user.added.v1', Buffer.from(JSON.stringify(event)));
    await begun;
    await listener.close(0);
    const closed = client.close();
    go();
    await closed;
    expect(await channel.checkQueue(queue)).toMatchObject({ messageCount: 1 });
  });

  it('keeps nothing of a closed listener', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const listenOnce = async () => {
      const handlers = { 'user.added.v1': () => undefined };
      const listener = await client.listen({ queue: 'billing.events', handlers });
      await listener.close(0);
      return [new WeakRef(listener), new WeakRef(handlers)];
    };
    const closed = await listenOnce();
    await eventually(() => {
      collect();
      return closed.every((one) => one.deref() === undefined);
    });
  });
});
