import { createHash } from 'node:crypto';
import type { Channel, ChannelModel, GetMessage, Options } from 'amqplib';
import { Registry } from 'prom-client';
import { ApiError } from '@app/contracts/error';
import { AddUsers, type AddUsersRequest } from '@app/contracts/users.add';
import { Exists } from '@app/contracts/users.exists';
import { createTestBroker, type TestBroker } from '@app/testing/broker';
import { eventually } from '@app/testing/eventually';
import { startUsersStub, type UsersHandlers } from '@app/testing/users-stub';
import { declareTopology } from '../src/topology/declare-topology';
import type { DeliveryContext } from '../src/delivery/delivery-context';
import { openConnection } from '@app/amqp/open-connection';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';

const BODY: AddUsersRequest = { organizationId: 'o', users: [{ userId: 'u' }] };
const CALL = { apiKey: 'key', requestId: 'request-1', timeoutMs: 5000 };

const DEAD = 'users.commands.dead';
const REFUSED = 'users.commands.refused';

class DatabaseAway extends Error {}

describe('failures', () => {
  let broker: TestBroker;
  let account: string;
  let model: ChannelModel;
  let channel: Channel;
  let client: RabbitClient;
  let server: RabbitServer;
  let databaseIsBack: () => boolean;
  let probes = 0;
  const handlers = {} as UsersHandlers;
  const metrics = new Registry();

  beforeAll(async () => {
    broker = await createTestBroker();
    account = new URL(broker.url).username;
    await declareTopology(broker.url);
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createChannel();
    client = new RabbitClient({ connection: { url: broker.url, name: 'gateway' }, metrics });
    await client.connect();
    server = await startUsersStub(
      {
        connection: { url: broker.url, name: 'users' },
        metrics,
        maxAttempts: 2,
        isUnavailable: (error) => error instanceof DatabaseAway,
        probe: async () => {
          probes++;
          if (!databaseIsBack()) throw new Error('still away');
        },
      },
      handlers,
    );
    await eventually(() => server.check() === undefined && client.check() === undefined);
  });

  afterAll(async () => {
    await client?.close();
    await server?.close();
    await model?.close();
    await broker?.drop();
  });

  beforeEach(async () => {
    handlers.add = handlers.authenticate = handlers.exists = () => ({});
    databaseIsBack = () => true;
    for (const queue of [DEAD, REFUSED]) await channel.purgeQueue(queue);
  });

  const publish = (body: unknown, options: Options.Publish = {}, routingKey = 'users.add.v1') =>
    channel.publish('commands', routingKey, Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)), {
      persistent: true,
      headers: { 'x-api-key': 'key' },
      ...options,
    });

  const next = (queue: string): Promise<GetMessage> =>
    eventually(() => channel.get(queue, { noAck: true })) as Promise<GetMessage>;
  const nextDead = () => next(DEAD);
  const nextRefused = () => next(REFUSED);

  const inHand = async (queue: string): Promise<number> => {
    const { values } = await metrics.getSingleMetric('rabbitmq_deliveries_in_flight')!.get();
    return values.find(({ labels }) => labels.queue === queue)?.value ?? 0;
  };

  const expectEverythingWorks = async () => {
    expect((await client.call(AddUsers, BODY, CALL)).parse()).toEqual({});
  };

  describe('a command without a caller that waits', () => {
    it('goes to the refused queue when a retry cannot help', async () => {
      handlers.add = () => {
        throw new ApiError('NOT_FOUND', 'No such organization.');
      };
      const timestamp = Math.floor(Date.now() / 1000);
      const before = Date.now();
      publish(BODY, {
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
      expect(await channel.get(REFUSED)).toBe(false);
    });

    it('is retried after a second, and is a dead letter after the last attempt', async () => {
      const seen: { context: DeliveryContext; at: number }[] = [];
      handlers.add = (_, context) => {
        seen.push({ context, at: performance.now() });
        throw new Error('a bug');
      };
      publish(BODY, { messageId: 'm-2', userId: account, headers: { 'x-api-key': 'key', 'x-request-id': 'r-2' } });
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
    });

    it('keeps its tenant and its Idempotency-Key when other headers cannot be encoded again', async () => {
      const seen: DeliveryContext[] = [];
      handlers.add = (_, context) => {
        seen.push(context);
        throw new ApiError('UNAVAILABLE', 'Not now.');
      };
      const understood = { 'x-api-key': 'key', 'x-request-id': 'r-3', 'x-idempotency-key': 'once' };
      publish(BODY, { headers: { ...understood, 'x-odd': Object.fromEntries([['__proto__', Buffer.from('x')]]) } });
      const { properties } = await nextDead();
      expect(seen.map(({ apiKey, idempotencyKey }) => [apiKey, idempotencyKey])).toEqual([
        ['key', 'once'],
        ['key', 'once'],
      ]);
      expect(properties.headers).toMatchObject({ ...understood, 'x-dead-status': 'UNAVAILABLE' });
      expect(properties.headers).not.toHaveProperty('x-odd');
    });

    it('is done when a later attempt succeeds', async () => {
      const attempts: number[] = [];
      handlers.add = (_, { attempt }) => {
        attempts.push(attempt);
        if (attempts.length === 1) throw new ApiError('UNAVAILABLE', 'The users service is away.');
        return {};
      };
      publish(BODY);
      await eventually(() => attempts.length === 2);
      expect(attempts).toEqual([1, 2]);
      await expectEverythingWorks();
      expect(await channel.get(DEAD)).toBe(false);
    });

    it('keeps only its own headers when it is refused with many headers, because queue limits do not count headers', async () => {
      handlers.add = () => {
        throw new ApiError('NOT_FOUND', 'No such organization.');
      };
      publish(BODY, { headers: { 'x-api-key': 'key', 'x-request-id': 'r-4', 'x-large': 'x'.repeat(20_000) } });
      const { properties, content } = await nextRefused();
      expect(properties.headers).toMatchObject({ 'x-api-key': 'key', 'x-request-id': 'r-4', 'x-dead-status': 'NOT_FOUND' });
      expect(properties.headers).not.toHaveProperty('x-large');
      expect(JSON.parse(content.toString())).toEqual(BODY);
    });

    it('is held until the dead-letter queue takes it, and no other command waits for that', async () => {
      handlers.add = () => {
        throw new ApiError('NOT_FOUND', 'No such organization.');
      };
      await channel.unbindQueue(REFUSED, 'dead', REFUSED);
      try {
        publish(BODY, { messageId: 'kept' });
        await eventually(async () => {
          const returned = await metrics.getSingleMetric('rabbitmq_returned_total')!.get();
          return returned.values.some(({ value, labels }) => labels.exchange === 'dead' && value > 0);
        });
        handlers.add = () => ({});
        await expectEverythingWorks();
      } finally {
        await channel.bindQueue(REFUSED, 'dead', REFUSED);
      }
      const { properties } = await nextRefused();
      // Delivered once: a requeue would have counted as another delivery.
      expect([properties.messageId, properties.headers?.['x-dead-status']]).toEqual(['kept', 'NOT_FOUND']);
    });
  });

  describe('without the database', () => {
    it('a restart goes unnoticed', async () => {
      let back = false;
      databaseIsBack = () => back;
      const runs: string[] = [];
      handlers.add = (_, { messageId, redelivered }) => {
        runs.push(`${messageId} ${redelivered}`);
        if (!back) throw new DatabaseAway();
        return { stored: messageId };
      };
      publish(BODY, { messageId: 'background' });
      await eventually(() => server.check() === 'the database is away');
      const awaited = client.call(AddUsers, BODY, { ...CALL, messageId: 'awaited' });
      await eventually(async () => (await inHand('users.calls')) === 1);
      back = true;
      expect((await awaited).parse()).toEqual({ stored: 'awaited' });
      await eventually(() => server.check() === undefined);
      expect(runs.sort()).toEqual(['awaited false', 'background false', 'background false']);
      expect(await channel.get(DEAD)).toBe(false);
    });

    it('for longer: a new command with a caller is refused, a started one and one without a caller wait', async () => {
      let back = false;
      databaseIsBack = () => back;
      probes = 0;
      const runs: unknown[] = [];
      handlers.add = (_, { messageId }) => {
        runs.push(messageId);
        if (!back) throw new DatabaseAway();
        return { stored: messageId };
      };
      const begun = client.call(AddUsers, BODY, { ...CALL, messageId: 'begun' });
      await eventually(() => server.check() === 'the database is away');
      publish(BODY, { messageId: 'background' });
      // More than the prefetch, because commands in the queue must be answered too.
      const refused = await Promise.allSettled(Array.from({ length: 200 }, () => client.call(AddUsers, BODY, CALL)));
      for (const outcome of refused) expect(outcome).toMatchObject({ status: 'rejected', reason: { status: 'UNAVAILABLE' } });
      // At once from now on.
      const before = performance.now();
      await expect(client.call(AddUsers, BODY, CALL)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
      expect(performance.now() - before).toBeLessThan(900);
      expect(probes).toBeGreaterThan(1);
      expect(runs).toEqual(['begun']);
      back = true;
      expect((await begun).parse()).toEqual({ stored: 'begun' });
      await eventually(() => runs.includes('background'));
      handlers.add = () => ({});
      await expectEverythingWorks();
    });

    it('answers queries that nothing was executed, and goes on consuming them', async () => {
      handlers.exists = () => {
        throw new DatabaseAway();
      };
      await expect(client.call(Exists, {}, CALL)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
      handlers.exists = () => ({ fine: true });
      expect((await client.call(Exists, {}, CALL)).parse()).toEqual({ fine: true });
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
      await expect(client.call(AddUsers, BODY, { ...CALL, timeoutMs: 200, messageId: 'late' })).rejects.toMatchObject({
        status: 'DEADLINE_EXCEEDED',
      });
      back = true;
      await eventually(() => server.check() === undefined);
      await client.call(AddUsers, BODY, { ...CALL, messageId: 'after' });
      expect(runs).toEqual(['late', 'after']);
    });
  });

  describe('hostile and malformed messages', () => {
    const headers = { 'x-api-key': 'key' };
    const cases: [string, unknown, Options.Publish, string?][] = [
      ['not JSON', Buffer.from('{"organizationId":'), { headers }],
      ['an empty body', Buffer.alloc(0), { headers }],
      ['not UTF-8', Buffer.from([0x22, 0xff, 0x22]), { headers }],
      ['nesting 100,000 deep', Buffer.from('['.repeat(100_000) + ']'.repeat(100_000)), { headers }],
      ['a key __proto__', Buffer.from('{"__proto__":{}}'), { headers }],
      ['a body above the limit', Buffer.alloc(1024 * 1024 + 1, 0x20), { headers }],
      ['an invalid body', { organizationId: 'o' }, { headers }],
      ['no headers', BODY, { headers: undefined }],
      ['a blank tenant', BODY, { headers: { 'x-api-key': ' ' } }],
      ['a tenant of 257 bytes', BODY, { headers: { 'x-api-key': 'k'.repeat(257) } }],
      ['a tenant that is a table', BODY, { headers: { 'x-api-key': { a: 1 } } }],
      ['a deadline that is text', BODY, { headers: { ...headers, 'x-deadline': 'soon' } }],
      ['an idempotency key with control characters', BODY, { headers: { ...headers, 'x-idempotency-key': 'a\nb' } }],
      ['a reply_to that is no queue name', BODY, { headers, replyTo: 'a b/../c' }],
      [
        'headers of odd types',
        Buffer.from('x'),
        { headers: { ...headers, date: { '!': 'timestamp', value: 5 }, bytes: Buffer.from('b'), no: null } },
      ],
    ];

    it.each(cases)('%s: refused, with the reason', async (_, body, options) => {
      publish(body, options);
      const { properties, content } = await nextRefused();
      expect(properties.headers).toMatchObject({ 'x-dead-status': 'INVALID_ARGUMENT', 'x-routing-key': 'users.add.v1' });
      expect(properties.headers?.['x-dead-reason']).toMatch(/^.{5,}/);
      const published = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
      expect(content.equals(published.subarray(0, 1024))).toBe(true);
      if (Buffer.isBuffer(body)) {
        expect(properties.headers).toMatchObject({ 'x-dead-size': published.length, 'x-dead-sha256': sha256(published) });
      }
      await expectEverythingWorks();
    });

    it('an unknown routing key in the queue, or CC: refused', async () => {
      await channel.bindQueue('users.commands.0', 'commands', 'users.add.v99');
      publish(BODY, {}, 'users.add.v99');
      expect((await nextRefused()).properties.headers).toMatchObject({ 'x-routing-key': 'users.add.v99' });
      // A copy by CC arrives in this queue with the routing key of another queue.
      publish(BODY, { headers: { ...headers, CC: ['users.add.v1'] } }, 'users.exists.v1');
      expect((await nextRefused()).properties.headers).toMatchObject({ 'x-routing-key': 'users.exists.v1' });
      publish(BODY, { headers: { ...headers, CC: ['nothing'] } });
      expect((await nextRefused()).properties.headers).toMatchObject({
        'x-dead-reason': 'The headers CC and BCC are not allowed.',
      });
      await expectEverythingWorks();
    });

    it('properties that are too long once decoded: refused', async () => {
      publishInvalidUtf8(channel, { headers, messageId: MARK, appId: MARK, type: MARK, contentType: MARK });
      const { properties } = await nextRefused();
      expect(properties.headers).toMatchObject({ 'x-dead-reason': 'message_id must be a string of at most 255 bytes.' });
      expect(properties).toMatchObject({ messageId: undefined, appId: undefined, type: undefined, contentType: undefined });

      publishInvalidUtf8(channel, { headers: { ...headers, [MARK]: 1 }, replyTo: 'q', correlationId: MARK });
      expect((await nextRefused()).properties.headers).toMatchObject({ 'x-dead-status': 'INVALID_ARGUMENT' });
      await expectEverythingWorks();
    });

    it('headers nested deeper than the client library can decode: refused, and the connection stays', async () => {
      const connection = server.unwrap();
      publishNestedHeader(channel, 9000);
      expect((await nextRefused()).properties.headers).toMatchObject({ 'x-dead-status': 'INVALID_ARGUMENT' });
      await expectEverythingWorks();
      expect(server.unwrap()).toBe(connection);
    });

    it('refuses with a reply when a caller waits', async () => {
      const { queue } = await channel.assertQueue('', { exclusive: true });
      await channel.bindQueue(queue, 'replies', queue);
      publish(Buffer.from('{'), { replyTo: queue, correlationId: 'error', headers });
      const reply = (await eventually(() => channel.get(queue, { noAck: true }))) as GetMessage;
      expect(reply.properties).toMatchObject({ correlationId: 'error', headers: { 'x-status': 'INVALID_ARGUMENT' } });
      expect(JSON.parse(reply.content.toString())).toEqual({ status: 'INVALID_ARGUMENT', message: 'The body must be JSON.' });
      expect(await channel.get(DEAD)).toBe(false);
    });

    it('drops a query without reply_to', async () => {
      let ran = false;
      handlers.exists = () => (ran = true);
      publish({}, {}, 'users.exists.v1');
      await eventually(async () => {
        const { values } = await metrics.getSingleMetric('rabbitmq_deliveries_total')!.get();
        return values.some(({ labels }) => labels.outcome === 'dropped');
      });
      expect(ran).toBe(false);
    });

    it('survives replies that make no sense', async () => {
      const { replyQueue } = (client as unknown as { caller: { replyQueue: string } }).caller;
      for (const correlationId of ['error', '__proto__', undefined]) {
        channel.publish('replies', replyQueue, Buffer.from('{'), { correlationId, headers: { 'x-status': 'OK' } });
      }
      channel.publish('replies', replyQueue, Buffer.alloc(0));
      await eventually(async () => {
        const { values } = await metrics.getSingleMetric('rabbitmq_unknown_replies_total')!.get();
        return values[0].value >= 4;
      });
      await expectEverythingWorks();
    });
  });
});

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const MARK = 'Q'.repeat(200);

/** Publishes frames that amqplib itself would not write: they are changed on their way to the socket. */
function publishChanged(channel: Channel, options: Options.Publish, change: (frame: Buffer) => void): void {
  const { connection, ch } = channel as unknown as {
    connection: { channels: { buffer: { write(frame: Buffer): boolean } }[] };
    ch: number;
  };
  const { buffer } = connection.channels[ch];
  const { write } = buffer;
  buffer.write = (frame) => {
    change(frame);
    return write.call(buffer, frame);
  };
  try {
    channel.publish('commands', 'users.add.v1', Buffer.from(JSON.stringify(BODY)), options);
  } finally {
    buffer.write = write;
  }
}

/** Each byte of MARK becomes an invalid byte. Decoded, an invalid byte takes three bytes. */
const publishInvalidUtf8 = (channel: Channel, options: Options.Publish) =>
  publishChanged(channel, options, (frame) => {
    for (let at = frame.indexOf(MARK); at >= 0; at = frame.indexOf(MARK)) frame.fill(0xff, at, at + MARK.length);
  });

/** Publishes a header of nested tables. */
function publishNestedHeader(channel: Channel, levels: number): void {
  const LEVEL_BYTES = 7;
  const placeholder = Buffer.alloc(levels * LEVEL_BYTES, 'Q');
  const tables = Buffer.alloc(placeholder.length);
  for (let at = 0; at < tables.length; at += LEVEL_BYTES) {
    tables.write('\u0001aF', at, 'latin1');
    tables.writeUInt32BE(tables.length - at - LEVEL_BYTES, at + 3);
  }
  publishChanged(channel, { headers: { 'x-api-key': 'key', deep: placeholder.toString() } }, (frame) => {
    const at = frame.indexOf(placeholder);
    if (at < 0) return;
    // The type byte stands before the length: change the string into a table.
    frame.write('F', at - 5);
    tables.copy(frame, at);
  });
}
