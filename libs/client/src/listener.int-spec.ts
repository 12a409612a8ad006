import type { Channel, ChannelModel } from 'amqplib';
import { IN_USE, leaveNode } from '@app/amqp/connection/leave-node';
import { openConnection } from '@app/amqp/connection/open-connection';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { CollaborationClient, type ApiError, type CloudEvent, type Logger } from './client';

const QUEUE = 'billing.events';
const TYPE = 'user.added.v1';
const EVENT = { specversion: '1.0', source: '/users', type: TYPE, data: {} };

describe('a listener of another service', () => {
  let broker: TestBroker;
  let model: ChannelModel;
  let channel: Channel;
  let client: CollaborationClient | undefined;

  beforeAll(async () => {
    broker = await createTestBroker();
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createChannel();
    for (const exchange of ['commands', 'events']) await channel.assertExchange(exchange, 'topic');
  });
  afterEach(() => client?.close(0));
  afterAll(async () => {
    await model?.close();
    await broker?.drop();
  });

  const listen = (handler: () => unknown, options: { exchange?: string; logger?: Logger; tries?: number } = {}) => {
    const { exchange, logger, tries = 1 } = options;
    client = new CollaborationClient({ url: broker.url, name: 'billing', apiKey: 'key', exchange, logger });
    return client.listen({ queue: QUEUE, handlers: { [TYPE]: handler }, tries });
  };
  const happen = (id = 'e') => channel.publish('events', TYPE, Buffer.from(JSON.stringify({ ...EVENT, id })));
  const reasonOfDeath = async () => {
    const letter = await eventually(() => channel.get(`${QUEUE}.dead`, { noAck: true }));
    return letter && (letter.properties.headers?.['x-dead-reason'] as unknown);
  };
  const loggerOf = (log: (fields: object) => unknown): Logger => ({ info: log, warn: log, error: log });

  it.each([
    ['an error', () => new Error('not now'), 'not now'],
    ['a text', () => 'not now', 'not now'],
    ['nothing', () => undefined, 'undefined'],
    ['an object without a text', () => Object.create(null) as unknown, 'the handler threw something without a text'],
    ['an error whose message is no text', () => Object.assign(new Error(), { message: { code: 7 } }), 'Error: [object Object]'],
  ])('keeps an event as a letter when its handler throws %s', async (_, thrown, reason) => {
    await listen(() => {
      throw thrown();
    });
    happen();
    expect(await reasonOfDeath()).toBe(reason);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('the disk is full');
      },
    ],
    ['rejects', () => Promise.reject(new Error('the disk is full'))],
  ])('goes on when its logger %s', async (_, log) => {
    const logger = loggerOf(log);
    await listen(
      () => {
        throw new Error('not now');
      },
      { logger },
    );
    happen();
    expect(await reasonOfDeath()).toBe('not now');
  });

  it('does not handle an event twice that comes again while its handler runs', async () => {
    const handled: string[] = [];
    const { open: end, opened: ended } = gate();
    const lines: string[] = [];
    const logger = loggerOf((fields) => lines.push((fields as { msg: string }).msg));
    client = new CollaborationClient({ url: broker.url, name: 'twice', apiKey: 'key', logger });
    const slow = async ({ id }: CloudEvent<unknown>) => {
      handled.push(id);
      if (id === 'slow') await ended;
    };
    await client.listen({ queue: 'twice.events', handlers: { [TYPE]: slow }, prefetch: 2 });
    happen('slow');
    await eventually(() => handled.length > 0);
    await eventually(async () => (await broker.management.killConnections('twice listening')) > 0, undefined, 100);
    await eventually(() => lines.some((line) => line.startsWith('connection lost')));
    await eventually(() => client!.check() === undefined);
    // The broker delivers it after the other one.
    happen('later');
    await eventually(() => handled.includes('later'));
    const closed = client.close();
    end();
    await closed;
    expect(handled).toEqual(['slow', 'later']);
    expect(await channel.checkQueue('twice.events')).toMatchObject({ messageCount: 0 });
  });

  it('handles an event at once that comes again during the pause between two tries', async () => {
    const failedAt: number[] = [];
    const handled = new Promise<number>((resolve) => {
      client = new CollaborationClient({ url: broker.url, name: 'pausing', apiKey: 'key' });
      const failing = async () => {
        if (failedAt.length === 5) return resolve(performance.now());
        failedAt.push(performance.now());
        throw new Error('not now');
      };
      void client.listen({ queue: 'pausing.events', handlers: { [TYPE]: failing }, prefetch: 1 }).then(() => happen());
    });
    await eventually(() => failedAt.length === 5);
    const [before, latest] = failedAt.slice(-2);
    for (const { address } of IN_USE) leaveNode(address, 'a test');
    // The pause that has begun is at least as long as the one before.
    expect((await handled) - latest).toBeLessThan(latest - before);
  });

  it('gives each try the event as it was published', async () => {
    const seen: unknown[] = [];
    client = new CollaborationClient({ url: broker.url, name: 'changing', apiKey: 'key' });
    const changing = ({ id, data }: CloudEvent<{ organizationId: string }>) => {
      seen.push([id, { ...data }]);
      data.organizationId = 'changed';
      if (seen.length === 1) throw new Error('not now');
    };
    await client.listen({ queue: 'changing.events', handlers: { [TYPE]: changing } });
    const event = { ...EVENT, id: 'changed', data: { organizationId: 'acme' } };
    channel.publish('events', TYPE, Buffer.from(JSON.stringify(event)));
    await eventually(() => seen.length === 2);
    expect(seen[1]).toEqual(seen[0]);
  });

  it('says why it does not listen, and why commands cannot be published, each with its own reason', async () => {
    const vhost = new URL(broker.url).pathname.slice(1);
    const account = `reader-${vhost}`;
    await broker.management.put(`users/${account}`, { password: 'secret', tags: '' });
    await broker.management.put(`permissions/${vhost}/${account}`, { configure: '^$', write: '.*', read: '.*' });
    const url = new URL(broker.url);
    [url.username, url.password] = [account, 'secret'];
    client = new CollaborationClient({ url: url.href, name: 'billing', apiKey: 'key', exchange: 'missing' });
    const timeoutMs = 4000;
    try {
      await Promise.all([
        // Not only that the account may not declare it.
        expect(client.listen({ queue: 'billing.misspelt', handlers: { [TYPE]: () => undefined }, timeoutMs })).rejects.toThrow(
          /: queue billing\.misspelt or exchange billing\.misspelt\.dead does not exist, .*ACCESS_REFUSED/,
        ),
        expect(client.publish('documents.set.v1', { organizationId: 'o', documentId: 'd' }, { timeoutMs })).rejects.toThrow(
          'exchange missing does not exist',
        ),
      ]);
    } finally {
      await broker.management.delete(`users/${account}`);
    }
  });

  it('does not make the failure of a handler the reason why commands cannot be published', async () => {
    let refusal: Promise<ApiError> | undefined;
    const logger = loggerOf((fields) => {
      if ((fields as { msg: string }).msg !== 'a handler failed' || refusal) return;
      const published = client!.publish('documents.set.v1', { organizationId: 'o', documentId: 'd' }, { timeoutMs: 1 });
      refusal = published.then(
        () => Promise.reject(new Error('it worked')),
        (error: unknown) => error as ApiError,
      );
    });
    await listen(
      () => {
        throw new Error('not now');
      },
      { exchange: 'missing', logger, tries: 20 },
    );
    await eventually(() => client!.check()?.includes('missing'));
    happen();
    await eventually(() => refusal !== undefined);
    expect(await refusal).toMatchObject({
      status: 'UNAVAILABLE',
      message: expect.stringContaining('exchange missing does not exist') as string,
    });
  });
});
