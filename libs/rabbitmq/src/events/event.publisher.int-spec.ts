import { randomUUID } from 'node:crypto';
import type { Channel } from 'amqplib';
import { Registry } from 'prom-client';
import { ALL_EVENTS } from '@app/contracts/all-events';
import { ApiKeyRevoked } from '@app/contracts/events.users';
import { createDeclaredBroker, type DeclaredBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { TcpLink } from '@app/testing/tcp-link';
import { EventPublisher, type PublishedEvent } from './event.publisher';
import { declareTopology } from '../topology/declare-topology';
import { EventSubscriber } from './event.subscriber';

const PATIENCE_MS = 1000;
const REFUSING = { 'x-queue-type': 'classic', 'x-max-length': 1, 'x-overflow': 'reject-publish' };

describe(EventPublisher.name, () => {
  let broker: DeclaredBroker;
  let channel: Channel;
  let publisher: EventPublisher;
  let metrics: Registry;
  let subscriber: { close(): Promise<void> } | undefined;

  beforeEach(async () => {
    broker = await createDeclaredBroker();
    ({ channel } = broker);
    metrics = new Registry();
    publisher = await start(PATIENCE_MS);
  });
  afterEach(async () => {
    await subscriber?.close();
    subscriber = undefined;
    await publisher.close();
    await broker.drop();
  });

  const start = async (patienceMs: number) => {
    const connection = { url: broker.url, name: 'users' };
    const started = new EventPublisher({ connection, service: 'users', patienceMs, metrics });
    started.start();
    await eventually(() => started.check() === undefined);
    return started;
  };
  const revoked = (key = 'k'): PublishedEvent => ({
    id: randomUUID(),
    type: ApiKeyRevoked.type,
    apiKey: key,
    organizationId: key,
    occurredAt: new Date(),
    data: JSON.stringify({ apiKey: key, reason: 'disabled' }),
  });
  const created = (): PublishedEvent => ({
    ...revoked(),
    type: 'organization.created.v1',
    data: '{"organizationId":"o","version":1}',
  });
  /** @returns the ids of the events received since, in order */
  const listen = async (key: string, args = {}) => {
    const ids: string[] = [];
    const { queue } = await channel.assertQueue('', { exclusive: true, arguments: args });
    await channel.bindQueue(queue, 'events', key);
    await channel.consume(queue, (message) => void ids.push(String(message?.properties.messageId)), { noAck: true });
    return ids;
  };
  const stuck = async (key: string) => {
    await channel.assertQueue('stuck', { arguments: REFUSING });
    await channel.bindQueue('stuck', 'events', key);
    channel.sendToQueue('stuck', Buffer.from('full'));
    await eventually(async () => (await channel.checkQueue('stuck')).messageCount === 1);
  };
  const refusals = async () => (await metrics.getSingleMetric('events_refused_total')!.get()).values;
  const losses = async () => (await refusals()).filter(({ value }) => value > 0);
  const listenHere = async (heard: string[]) => {
    const hearing = (subscriber = new EventSubscriber({
      connection: { url: broker.url, name: 'gateway' },
      event: ApiKeyRevoked,
      onEvent: ({ apiKey }) => heard.push(apiKey),
      metrics,
    }));
    hearing.start();
    await eventually(() => hearing.check() === undefined);
  };

  it('publishes once and at once to the processes of this system, even while a listener refuses', async () => {
    await publisher.close();
    // Its patience does not end in this test.
    publisher = await start(60_000);
    const heard: string[] = [];
    await listenHere(heard);
    const good = await listen('#');
    await stuck('#');
    const event = revoked('refused');
    expect(await publisher.publish([event])).toEqual(new Set([event.id]));
    await eventually(() => heard.length === 1 && good.length === 1);
    for (let time = 0; time < 3; time++) expect(await publisher.publish([event])).toEqual(new Set([event.id]));
    await channel.purgeQueue('stuck');
    const last = revoked('last');
    expect(await publisher.publish([event])).toEqual(new Set());
    await channel.deleteQueue('stuck');
    expect(await publisher.publish([last])).toEqual(new Set());
    await eventually(() => heard.includes('last'));
    expect(heard).toEqual(['refused', 'last']);
    expect(await losses()).toEqual([]);
  });

  it('gives up on a listener that refuses for long, only for events of that type, until it takes one', async () => {
    const good = await listen('#');
    await stuck('api-key.revoked.v1');
    const [first, other] = [revoked(), created()];
    const since = performance.now();
    expect(await publisher.publish([first, other])).toEqual(new Set([first.id]));
    await eventually(async () => (await publisher.publish([first])).size === 0);
    expect(performance.now() - since).toBeGreaterThanOrEqual(PATIENCE_MS);
    // From now on each event is published once, without a wait.
    const later = Array.from({ length: 20 }, () => revoked());
    expect(await publisher.publish([...later, created()])).toEqual(new Set());
    await eventually(() => later.every(({ id }) => good.filter((got) => got === id).length === 1));
    expect(await losses()).toEqual([{ labels: { type: 'api-key.revoked.v1' }, value: 21 }]);
    expect(publisher.check()).toBeUndefined();

    await channel.purgeQueue('stuck');
    expect(await publisher.publish([revoked()])).toEqual(new Set());
    const [next] = [revoked()];
    expect(await publisher.publish([next])).toEqual(new Set([next.id]));
    expect(await losses()).toMatchObject([{ value: 21 }]);
  });

  it('counts the losses of each type of its service from 0, so that an alert sees the first', async () => {
    const types = ALL_EVENTS.filter(({ service }) => service === 'users').map(({ type }) => type);
    expect(await refusals()).toEqual(types.map((type) => ({ labels: { type }, value: 0 })));
  });

  it('publishes only to `events` a type that no process of this system listens to', async () => {
    const own = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(own.queue, 'events.own', '#');
    const good = await listen('#');
    const [mine, theirs] = [revoked(), created()];
    expect(await publisher.publish([mine, theirs])).toEqual(new Set());
    await eventually(() => good.length === 2);
    const first = await channel.get(own.queue, { noAck: true });
    expect(first && first.properties.messageId).toBe(mine.id);
    expect(await channel.get(own.queue)).toBe(false);
  });

  it('ends a connection on which an event was not confirmed in time, so that it does not arrive later', async () => {
    const link = await TcpLink.to(broker.url);
    const stalling = new EventPublisher({ connection: { url: link.url, name: 'users' }, service: 'users', metrics });
    try {
      stalling.start();
      await eventually(() => stalling.check() === undefined);
      link.silence();
      await expect(stalling.publish([created()])).rejects.toThrow('not confirmed');
      // The socket tells of its end in the next turns of the event loop. Only after 8 s a silent link is given up.
      await eventually(() => stalling.check() !== undefined, 4000, 0);
      await eventually(() => stalling.check() === undefined);
      expect(await stalling.publish([created()])).toEqual(new Set());
    } finally {
      await stalling.close();
      await link.close();
    }
  });

  it('fails while the queue of a service of this system is missing: the outbox keeps the event', async () => {
    await channel.deleteQueue('notifications.events');
    const event = { ...created(), type: 'user.removed.v1' };
    await expect(publisher.publish([event])).rejects.toThrow('no queue is bound for user.removed.v1: run "npm run setup"');
    // The gateway has a queue for each process, and there may be none.
    expect(await publisher.publish([revoked()])).toEqual(new Set());
    await declareTopology(broker.url);
    expect(await publisher.publish([event])).toEqual(new Set());
    expect((await channel.get('notifications.events', { noAck: true })) || undefined).toMatchObject({
      properties: { messageId: event.id },
    });
  });

  it('does not repeat the events that the processes of this system have, while one type is bound no more', async () => {
    const QUEUE = 'notifications.events';
    const [removed, added] = ['user.removed.v1', 'user.added.v1'].map((type) => ({ ...created(), type }));
    await channel.unbindQueue(QUEUE, 'events.own', removed.type);
    for (let time = 0; time < 3; time++)
      await expect(publisher.publish([removed, added])).rejects.toThrow('no queue is bound for user.removed.v1');
    await declareTopology(broker.url);
    expect(await publisher.publish([removed, added])).toEqual(new Set());
    const messages = [];
    for (let one = await channel.get(QUEUE, { noAck: true }); one; one = await channel.get(QUEUE, { noAck: true }))
      messages.push(one.properties.messageId);
    expect(messages).toEqual([added.id, removed.id]);
  });

  it('fails when the queue of a process of this system is full', async () => {
    await channel.assertQueue('stuck', { arguments: REFUSING });
    await channel.bindQueue('stuck', 'events.own', '#');
    const good = await listen('#');
    await publisher.publish([revoked()]);
    await eventually(() => good.length > 0);
    await expect(publisher.publish([revoked()])).rejects.toThrow('an event was nacked');
    expect(good).toHaveLength(1);
  });
});
