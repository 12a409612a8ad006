import { Logger } from '@nestjs/common';
import { ApiError } from '@app/contracts/error';
import { eventually } from '@app/testing/eventually';
import { metricValue } from '@app/testing/metric-value';
import type { UsersHandlers } from '@app/testing/system/users-stub';
import type { DeliveryContext } from '../src/delivery/delivery-context';
import { HeldDeliveries } from '../src/settle/held-deliveries';
import { BODY, DEAD, REFUSED, StubbedUsers } from './stubbed-users';

describe('a failing command without a caller that waits', () => {
  let users: StubbedUsers;
  let account: string;
  const handlers = {} as UsersHandlers;

  beforeAll(async () => {
    users = await StubbedUsers.start(handlers, { maxAttempts: 2 });
    account = new URL(users.broker.url).username;
  });
  afterAll(() => users?.close());

  beforeEach(async () => {
    handlers.add = handlers.authenticate = handlers.exists = () => ({});
    for (const queue of [DEAD, REFUSED]) await users.channel.purgeQueue(queue);
  });

  const warned = jest.spyOn(Logger.prototype, 'warn');
  beforeEach(() => warned.mockClear());
  const deaths = () =>
    warned.mock.calls
      .map(([line]: unknown[]) => line as { msg?: string })
      .filter(({ msg }) => msg === 'a message became a dead letter');

  const nextDead = () => users.next(DEAD);
  const nextRefused = () => users.next(REFUSED);

  it('goes to the refused queue when a retry cannot help', async () => {
    handlers.add = () => {
      throw new ApiError('NOT_FOUND', 'No such organization.');
    };
    const timestamp = Math.floor(Date.now() / 1000);
    const before = Date.now();
    users.publish(BODY, {
      messageId: 'm-1',
      timestamp,
      type: 'users.add.v1',
      appId: 'importer',
      userId: account,
      expiration: 60_000,
      headers: {
        'x-api-key': 'key',
        'x-mine': [1, 'two', { three: 3 }],
        'x-attempt': 7,
        'x-origin-user': 'forged',
        'x-lane': 'calls',
      },
    });
    const { content, properties, fields } = await nextRefused();
    // The dead-letter queue adds this header itself.
    delete properties.headers?.['x-delivery-count'];

    expect(JSON.parse(content.toString())).toEqual(BODY);
    expect(fields).toMatchObject({ exchange: 'dead', routingKey: REFUSED });
    expect(properties).toMatchObject({ messageId: 'm-1', timestamp, type: 'users.add.v1', appId: 'importer', deliveryMode: 2 });
    expect(properties).toMatchObject({ userId: account, expiration: undefined, replyTo: undefined });
    expect(properties.headers).toEqual({
      'x-api-key': 'key',
      'x-mine': [1, 'two', { three: 3 }],
      'x-attempt': 1,
      'x-routing-key': 'users.add.v1',
      'x-lane': 'commands',
      'x-origin-user': account,
      'x-first-failed-at': expect.any(Number) as number,
      'x-dead-status': 'NOT_FOUND',
      'x-dead-reason': 'No such organization.',
    });
    expect(properties.headers?.['x-first-failed-at']).toBeGreaterThanOrEqual(before);
    expect(await users.channel.get(REFUSED)).toBe(false);
    expect(deaths()).toMatchObject([{ status: 'NOT_FOUND', messageId: 'm-1', appId: 'importer', publisher: account }]);
  });

  it('is retried after a second, and is a dead letter after the last attempt', async () => {
    const seen: { context: DeliveryContext; at: number }[] = [];
    handlers.add = (_, context) => {
      seen.push({ context, at: performance.now() });
      throw new Error('a bug');
    };
    users.publish(BODY, { messageId: 'm-2', userId: account, headers: { 'x-api-key': 'key', 'x-request-id': 'r-2' } });
    const { properties } = await nextDead();

    expect(seen.map(({ context }) => context.attempt)).toEqual([1, 2]);
    expect(seen[1].at - seen[0].at).toBeGreaterThanOrEqual(990);
    expect(seen[1].context).toMatchObject({
      apiKey: 'key',
      messageId: 'm-2',
      requestId: 'r-2',
      pattern: 'users.add.v1',
      userId: account,
      awaited: false,
      redelivered: false,
    });
    expect(properties.headers).toMatchObject({ 'x-attempt': 2, 'x-dead-status': 'INTERNAL', 'x-dead-reason': 'Error: a bug' });
    expect(properties.headers?.['x-first-failed-at']).toBeLessThan(Date.now() - 900);
    // From the retry queue: it would grow with every retry.
    expect(properties.headers).not.toHaveProperty('x-death');
    expect(deaths()).toMatchObject([{ status: 'INTERNAL', reason: 'Error: a bug', requestId: 'r-2', pattern: 'users.add.v1' }]);
  });

  it('keeps its tenant and its Idempotency-Key when other headers cannot be encoded again', async () => {
    const seen: DeliveryContext[] = [];
    handlers.add = (_, context) => {
      seen.push(context);
      throw new ApiError('UNAVAILABLE', 'Not now.');
    };
    const understood = { 'x-api-key': 'key', 'x-request-id': 'r-3', 'x-idempotency-key': 'once' };
    users.publish(BODY, { headers: { ...understood, 'x-odd': Object.fromEntries([['__proto__', Buffer.from('x')]]) } });
    const { properties } = await nextDead();
    expect(seen.map(({ apiKey, idempotencyKey }) => [apiKey, idempotencyKey])).toEqual([
      ['key', 'once'],
      ['key', 'once'],
    ]);
    expect(properties.headers).toMatchObject({ ...understood, 'x-dead-status': 'UNAVAILABLE' });
    expect(properties.headers).not.toHaveProperty('x-odd');
  });

  it('is not held for headers that cannot be encoded again, because many held ones stop the queue for others', async () => {
    const changed = jest.spyOn(HeldDeliveries.prototype, 'change');
    handlers.add = () => {
      throw new ApiError('NOT_FOUND', 'No such organization.');
    };
    // The service receives a table with the key "!", which names a type for amqplib.
    const odd = { '!': 'object', value: { '!': 'odd' } };
    users.publish(BODY, { headers: { 'x-api-key': 'key', 'x-odd': odd } });
    const { properties } = await nextRefused();
    expect(properties.headers).not.toHaveProperty('x-odd');
    expect(changed).not.toHaveBeenCalled();
    changed.mockRestore();
  });

  it('is done when a later attempt succeeds', async () => {
    const attempts: number[] = [];
    handlers.add = (_, { attempt }) => {
      attempts.push(attempt);
      if (attempts.length === 1) throw new ApiError('UNAVAILABLE', 'The users service is away.');
      return {};
    };
    users.publish(BODY);
    await eventually(() => attempts.length === 2);
    expect(attempts).toEqual([1, 2]);
    await users.expectEverythingWorks();
    expect(await users.channel.get(DEAD)).toBe(false);
  });

  it('keeps only its own headers when it is refused with many headers, because queue limits do not count headers', async () => {
    handlers.add = () => {
      throw new ApiError('NOT_FOUND', 'No such organization.');
    };
    users.publish(BODY, { headers: { 'x-api-key': 'key', 'x-request-id': 'r-4', 'x-large': 'x'.repeat(20_000) } });
    const { properties, content } = await nextRefused();
    expect(properties.headers).toMatchObject({ 'x-api-key': 'key', 'x-request-id': 'r-4', 'x-dead-status': 'NOT_FOUND' });
    expect(properties.headers).not.toHaveProperty('x-large');
    expect(JSON.parse(content.toString())).toEqual(BODY);
  });

  it('is held until the dead-letter queue takes it, and no other command waits for that', async () => {
    handlers.add = () => {
      throw new ApiError('NOT_FOUND', 'No such organization.');
    };
    await users.channel.unbindQueue(REFUSED, 'dead', REFUSED);
    try {
      users.publish(BODY, { messageId: 'kept' });
      await eventually(async () => (await metricValue(users.metrics, 'rabbitmq_returned_total', { exchange: 'dead' })) > 0);
      handlers.add = () => ({});
      await users.expectEverythingWorks();
    } finally {
      await users.channel.bindQueue(REFUSED, 'dead', REFUSED);
    }
    const { properties } = await nextRefused();
    // Delivered once: a requeue would have counted as another delivery.
    expect([properties.messageId, properties.headers?.['x-dead-status']]).toEqual(['kept', 'NOT_FOUND']);
  });

  it('has 20 log lines a minute of its publisher, because an outage may end in tens of thousands of letters', async () => {
    handlers.add = () => {
      throw new ApiError('NOT_FOUND', 'No such organization.');
    };
    for (let number = 0; number < 30; number++) users.publish(BODY);
    await eventually(async () => (await users.channel.checkQueue(REFUSED)).messageCount === 30);
    expect(deaths().length).toBeGreaterThan(0);
    expect(deaths().length).toBeLessThanOrEqual(20);
  });
});
