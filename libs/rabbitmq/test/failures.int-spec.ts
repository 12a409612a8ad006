import { Logger } from '@nestjs/common';
import { ApiError } from '@app/contracts/error';
import { AddUsers } from '@app/contracts/users.add';
import { Exists } from '@app/contracts/users.exists';
import { eventually } from '@app/testing/eventually';
import type { UsersHandlers } from '@app/testing/system/users-stub';
import type { DeliveryContext } from '../src/delivery/delivery-context';
import { HeldDeliveries } from '../src/settle/held-deliveries';
import { BODY, CALL, DEAD, REFUSED, StubbedUsers } from './stubbed-users';

class DatabaseAway extends Error {}
/** Commands that may be at work in the service. */
const PLACES = 50;

describe('failures', () => {
  let users: StubbedUsers;
  let account: string;
  let databaseIsBack: () => boolean | Promise<boolean>;
  let probes = 0;
  const handlers = {} as UsersHandlers;

  beforeAll(async () => {
    users = await StubbedUsers.start(handlers, {
      maxAttempts: 2,
      prefetch: { commands: PLACES, queries: PLACES },
      isUnavailable: (error) => error instanceof DatabaseAway,
      probe: async () => {
        probes++;
        if (!(await databaseIsBack())) throw new Error('still away');
      },
    });
    account = new URL(users.broker.url).username;
  });
  afterAll(() => users?.close());

  beforeEach(async () => {
    handlers.add = handlers.authenticate = handlers.exists = () => ({});
    databaseIsBack = () => true;
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

  const inHand = async (queue: string): Promise<number> => {
    const { values } = await users.metrics.getSingleMetric('rabbitmq_deliveries_in_flight')!.get();
    return values.find(({ labels }) => labels.queue === queue)?.value ?? 0;
  };

  describe('a command without a caller that waits', () => {
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
        await eventually(async () => {
          const returned = await users.metrics.getSingleMetric('rabbitmq_returned_total')!.get();
          return returned.values.some(({ value, labels }) => labels.exchange === 'dead' && value > 0);
        });
        handlers.add = () => ({});
        await users.expectEverythingWorks();
      } finally {
        await users.channel.bindQueue(REFUSED, 'dead', REFUSED);
      }
      const { properties } = await nextRefused();
      // Delivered once: a requeue would have counted as another delivery.
      expect([properties.messageId, properties.headers?.['x-dead-status']]).toEqual(['kept', 'NOT_FOUND']);
    });
  });

  describe('without the database', () => {
    /** It comes back during a probe: the pause, which may take a second, has no part of a wait between two probes. */
    const restarting = () => {
      const database = { back: false, comeBack: (): void => undefined };
      const isBack = new Promise<boolean>((resolve) => (database.comeBack = () => resolve((database.back = true))));
      databaseIsBack = () => isBack;
      return database;
    };
    /** The shortest time of some refusals, in milliseconds: a busy machine delays some of them. */
    const refusedWithin = async (call: () => Promise<unknown>) => {
      const times: number[] = [];
      for (let time = 0; time < 5; time++) {
        const before = performance.now();
        await expect(call()).rejects.toMatchObject({ status: 'UNAVAILABLE' });
        times.push(performance.now() - before);
      }
      return Math.min(...times);
    };

    it('a restart goes unnoticed', async () => {
      const database = restarting();
      const runs: string[] = [];
      handlers.add = (_, { messageId, redelivered }) => {
        runs.push(`${messageId} ${redelivered}`);
        if (!database.back) throw new DatabaseAway();
        return { stored: messageId };
      };
      users.publish(BODY, { messageId: 'background' });
      await eventually(() => users.server.check() === 'the database is away');
      const awaited = users.client.call(AddUsers, BODY, { ...CALL, messageId: 'awaited' });
      await eventually(async () => (await inHand('users.calls')) === 1);
      database.comeBack();
      expect((await awaited).parse()).toEqual({ stored: 'awaited' });
      await eventually(() => users.server.check() === undefined);
      expect(runs.sort()).toEqual(['awaited false', 'background false', 'background false']);
      expect(await users.channel.get(DEAD)).toBe(false);
    });

    it('for longer: a new command with a caller is refused, a started one and one without a caller wait', async () => {
      let back = false;
      databaseIsBack = () => back;
      probes = 0;
      const runs: unknown[] = [];
      let fail = (): void => undefined;
      const failing = new Promise<void>((resolve) => (fail = resolve));
      handlers.add = async (_, { messageId }) => {
        if (runs.push(messageId) === PLACES) fail();
        if (back) return { stored: messageId };
        await failing;
        throw new DatabaseAway();
      };
      // All places are taken by commands that wait for the database.
      const begun = Array.from({ length: PLACES }, () => users.client.call(AddUsers, BODY, { ...CALL, messageId: 'begun' }));
      await eventually(() => users.server.check() === 'the database is away');
      users.publish(BODY, { messageId: 'background' });
      // More than the prefetch, because commands in the queue must be answered too.
      const refused = await Promise.allSettled(Array.from({ length: 200 }, () => users.client.call(AddUsers, BODY, CALL)));
      for (const outcome of refused) expect(outcome).toMatchObject({ status: 'rejected', reason: { status: 'UNAVAILABLE' } });
      // At once from now on.
      expect(await refusedWithin(() => users.client.call(AddUsers, BODY, CALL))).toBeLessThan(900);
      expect(probes).toBeGreaterThan(1);
      expect(runs).toEqual(begun.map(() => 'begun'));
      back = true;
      for (const call of begun) expect((await call).parse()).toEqual({ stored: 'begun' });
      await eventually(() => runs.includes('background'));
      handlers.add = () => ({});
      await users.expectEverythingWorks();
    });

    it('a restart goes unnoticed by a query', async () => {
      const database = restarting();
      let runs = 0;
      handlers.exists = () => {
        runs++;
        if (!database.back) throw new DatabaseAway();
        return { fine: true };
      };
      const answer = users.client.call(Exists, {}, CALL);
      await eventually(() => users.server.check() === 'the database is away');
      database.comeBack();
      expect((await answer).parse()).toEqual({ fine: true });
      expect(runs).toBe(2);
    });

    it('for longer: answers queries that nothing was executed, and goes on consuming them', async () => {
      let back = false;
      databaseIsBack = () => back;
      handlers.exists = () => {
        throw new DatabaseAway();
      };
      await expect(users.client.call(Exists, {}, CALL)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
      // At once from now on.
      expect(await refusedWithin(() => users.client.call(Exists, {}, CALL))).toBeLessThan(900);
      back = true;
      await eventually(() => users.server.check() === undefined);
      handlers.exists = () => ({ fine: true });
      expect((await users.client.call(Exists, {}, CALL)).parse()).toEqual({ fine: true });
    });

    it('executes nothing whose deadline has passed meanwhile', async () => {
      let back = false;
      databaseIsBack = () => back;
      const runs: unknown[] = [];
      handlers.add = (_, { messageId }) => {
        runs.push(messageId);
        if (!back) throw new DatabaseAway();
        return {};
      };
      await expect(users.client.call(AddUsers, BODY, { ...CALL, timeoutMs: 3000, messageId: 'late' })).rejects.toMatchObject({
        status: 'DEADLINE_EXCEEDED',
      });
      back = true;
      await eventually(() => users.server.check() === undefined);
      await users.client.call(AddUsers, BODY, { ...CALL, messageId: 'after' });
      expect(runs).toEqual(['late', 'after']);
    });
  });
});
