import { createHash } from 'node:crypto';
import type { GetMessage, Options } from 'amqplib';
import { eventually } from '@app/testing/eventually';
import { metricValue } from '@app/testing/metric-value';
import type { UsersHandlers } from '@app/testing/system/users-stub';
import { MARK, publishInvalidUtf8, publishNestedHeader } from './raw-frames';
import { BODY, DEAD, REFUSED, StubbedUsers } from './stubbed-users';

describe('hostile and malformed messages', () => {
  let users: StubbedUsers;
  const handlers = { add: () => ({}), authenticate: () => ({}), exists: () => ({}) } as UsersHandlers;

  beforeAll(async () => {
    users = await StubbedUsers.start(handlers);
  });
  afterAll(() => users?.close());

  const nextRefused = () => users.next(REFUSED);
  const returned = () => metricValue(users.metrics, 'rabbitmq_returned_total', { exchange: 'replies' });

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
    users.publish(body, options);
    const { properties, content } = await nextRefused();
    expect(properties.headers).toMatchObject({ 'x-dead-status': 'INVALID_ARGUMENT', 'x-routing-key': 'users.add.v1' });
    expect(properties.headers?.['x-dead-reason']).toMatch(/^.{5,}/);
    const published = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    expect(content.equals(published.subarray(0, 1024))).toBe(true);
    if (Buffer.isBuffer(body)) {
      expect(properties.headers).toMatchObject({ 'x-dead-size': published.length, 'x-dead-sha256': sha256(published) });
    }
    await users.expectEverythingWorks();
  });

  it('an unknown routing key in the queue, or CC: refused', async () => {
    await users.channel.bindQueue('users.commands.0', 'commands', 'users.add.v99');
    users.publish(BODY, {}, 'users.add.v99');
    expect((await nextRefused()).properties.headers).toMatchObject({ 'x-routing-key': 'users.add.v99' });
    // A copy by CC arrives in this queue with the routing key of another queue.
    users.publish(BODY, { headers: { ...headers, CC: ['users.add.v1'] } }, 'users.exists.v1');
    expect((await nextRefused()).properties.headers).toMatchObject({ 'x-routing-key': 'users.exists.v1' });
    users.publish(BODY, { headers: { ...headers, CC: ['nothing'] } });
    expect((await nextRefused()).properties.headers).toMatchObject({
      'x-dead-reason': 'The headers CC and BCC are not allowed.',
    });
    await users.expectEverythingWorks();
  });

  it('properties that are too long once decoded: refused', async () => {
    publishInvalidUtf8(users.channel, { headers, messageId: MARK, appId: MARK, type: MARK, contentType: MARK });
    const { properties } = await nextRefused();
    expect(properties.headers).toMatchObject({ 'x-dead-reason': 'message_id must be a string of at most 255 bytes.' });
    expect(properties).toMatchObject({ messageId: undefined, appId: undefined, type: undefined, contentType: undefined });

    publishInvalidUtf8(users.channel, { headers: { ...headers, [MARK]: 1 }, replyTo: 'q', correlationId: MARK });
    expect((await nextRefused()).properties.headers).toMatchObject({ 'x-dead-status': 'INVALID_ARGUMENT' });
    await users.expectEverythingWorks();
  });

  it('headers nested deeper than the client library can decode: refused, and the connection stays', async () => {
    const connection = users.server.unwrap();
    const account = decodeURIComponent(new URL(users.broker.url).username);
    publishNestedHeader(users.channel, 9000, account);
    expect((await nextRefused()).properties.headers).toMatchObject({
      'x-dead-status': 'INVALID_ARGUMENT',
      'x-origin-user': account,
    });
    await users.expectEverythingWorks();
    expect(users.server.unwrap()).toBe(connection);
  });

  it('refuses with a reply when a caller waits', async () => {
    const { queue } = await users.channel.assertQueue('', { exclusive: true });
    await users.channel.bindQueue(queue, 'replies', queue);
    users.publish(Buffer.from('{'), { replyTo: queue, correlationId: 'error', headers });
    const reply = (await eventually(() => users.channel.get(queue, { noAck: true }))) as GetMessage;
    expect(reply.properties).toMatchObject({ correlationId: 'error', headers: { 'x-status': 'INVALID_ARGUMENT' } });
    expect(JSON.parse(reply.content.toString())).toEqual({ status: 'INVALID_ARGUMENT', message: 'The body must be JSON.' });
    expect(await users.channel.get(DEAD)).toBe(false);
  });

  it('writes a reply that found no queue again, three times', async () => {
    handlers.add = () => ({});
    const ask = (replyTo: string) => users.publish(BODY, { replyTo, correlationId: 'late', headers });
    // With another queue when a busy machine binds it after the last time.
    const reply = await eventually(async () => {
      const { queue } = await users.channel.assertQueue('', { exclusive: true });
      const earlier = await returned();
      ask(queue);
      await eventually(async () => (await returned()) > earlier);
      await users.channel.bindQueue(queue, 'replies', queue);
      return eventually(() => users.channel.get(queue, { noAck: true }), 5000);
    });
    expect(reply && reply.properties).toMatchObject({ correlationId: 'late', headers: { 'x-status': 'OK' } });
    expect(reply && JSON.parse(reply.content.toString())).toEqual({});

    const before = await returned();
    ask('nowhere');
    await eventually(async () => (await returned()) === before + 4);
  });

  it('writes all such replies to callers of this system again, more than to other services', async () => {
    const before = await returned();
    const body = Buffer.from(JSON.stringify(BODY));
    const count = 150;
    for (let number = 0; number < count; number++)
      users.channel.publish('calls', 'users.add.v1', body, { replyTo: 'no-caller', correlationId: `${number}`, headers });
    await eventually(async () => (await returned()) === before + 4 * count);
  });

  it('drops a query without reply_to', async () => {
    let ran = false;
    handlers.exists = () => (ran = true);
    users.publish({}, {}, 'users.exists.v1');
    await eventually(() => metricValue(users.metrics, 'rabbitmq_deliveries_total', { outcome: 'dropped' }));
    expect(ran).toBe(false);
  });

  it('survives replies that make no sense', async () => {
    const { replyQueue } = (users.client as unknown as { caller: { replyQueue: string } }).caller;
    for (const correlationId of ['error', '__proto__', undefined]) {
      users.channel.publish('replies', replyQueue, Buffer.from('{'), { correlationId, headers: { 'x-status': 'OK' } });
    }
    users.channel.publish('replies', replyQueue, Buffer.alloc(0));
    await eventually(async () => (await metricValue(users.metrics, 'rabbitmq_unknown_replies_total')) >= 4);
    await users.expectEverythingWorks();
  });
});

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
