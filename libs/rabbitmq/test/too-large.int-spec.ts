import { createHash } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Logger } from '@nestjs/common';
import type { Options } from 'amqplib';
import { AddUsers } from '@app/contracts/users.add';
import { eventually } from '@app/testing/eventually';
import { metricValue } from '@app/testing/metric-value';
import type { UsersHandlers } from '@app/testing/system/users-stub';
import { BODY, REFUSED, StubbedUsers } from './stubbed-users';

const MEBIBYTE = 1024 * 1024;
const PLACES = 30;
const LARGE = Buffer.alloc(2 * MEBIBYTE, 'x');

/** Bodies above the limit wait for nothing: many of them would fill the memory. */
describe('bodies that are too large', () => {
  let users: StubbedUsers;
  let letGo: () => void;
  const handlers = {} as UsersHandlers;
  const headers = { 'x-api-key': 'key' };

  beforeAll(async () => {
    users = await StubbedUsers.start(handlers, { prefetch: { commands: PLACES, queries: 1 } });
  });
  afterAll(() => users?.close());

  /** Commands and a query take all turns until the end of the test. */
  beforeEach(async () => {
    const over = new Promise<object>((resolve) => (letGo = () => resolve({})));
    handlers.add = handlers.exists = handlers.authenticate = () => over;
    // Calls of two keys: beside light work of others a key has half of the turns, and the lanes a quarter.
    for (let number = 0; number < PLACES; number++)
      void users.client.call(AddUsers, BODY, { apiKey: number % 2 ? 'one' : 'other', requestId: 'r', timeoutMs: 20_000 });
    users.publish({}, { replyTo: 'nowhere' }, 'users.exists.v1');
    await eventually(async () => (await running('commands')) === PLACES && (await running('queries')) === 1);
  });
  afterEach(async () => {
    letGo();
    handlers.add = () => ({});
    await eventually(async () => (await running('commands')) === 0);
    await users.expectEverythingWorks();
    await users.channel.purgeQueue(REFUSED);
  });

  const running = (kind: string) => metricValue(users.metrics, 'rabbitmq_deliveries_running', { kind });
  const inFlight = (queue: string) => metricValue(users.metrics, 'rabbitmq_deliveries_in_flight', { queue });
  const settled = (outcome: string) => metricValue(users.metrics, 'rabbitmq_deliveries_total', { outcome });
  /** In another lane than the commands that have the turns. */
  const publish = (body: Buffer, options: Options.Publish = {}) =>
    users.channel.publish('commands.1', 'users.add.v1', body, { headers, messageId: 'large', timestamp: 1, ...options });
  const replies = async () => {
    const { queue } = await users.channel.assertQueue('', { exclusive: true });
    await users.channel.bindQueue(queue, 'replies', queue);
    return queue;
  };

  it('become the same letters as before, although no turn is free, and a readable one waits', async () => {
    const before = await settled('refused');
    publish(Buffer.from('{'));
    publish(LARGE);
    const { content, properties } = await users.next(REFUSED);
    expect(content.equals(LARGE.subarray(0, 1024))).toBe(true);
    expect(properties).toMatchObject({ messageId: 'large', timestamp: 1 });
    expect(properties.headers).toMatchObject({
      'x-dead-status': 'INVALID_ARGUMENT',
      'x-dead-reason': 'The body must be at most 1048576 bytes.',
      'x-dead-size': LARGE.length,
      'x-dead-sha256': createHash('sha256').update(LARGE).digest('hex'),
      'x-lane': 'commands.1',
      'x-api-key': 'key',
    });
    await eventually(async () => (await settled('refused')) === before + 1);
    // The one that came first waits for its turn.
    expect(await inFlight('users.commands.1')).toBe(1);
    expect(await metricValue(users.metrics, 'rabbitmq_command_age_seconds', { queue: 'users.commands.1' })).toBeGreaterThan(0);
  });

  it('are refused with a reply when a caller waits, commands and queries', async () => {
    const queue = await replies();
    const ask = (bytes: number) => users.publish(Buffer.alloc(bytes, 'x'), { replyTo: queue }, 'users.exists.v1');
    const calls: [() => void, number][] = [
      [() => publish(LARGE, { replyTo: queue }), 1_048_576],
      [() => ask(524_289), 524_288],
    ];
    for (const [call, most] of calls) {
      call();
      const reply = await users.next(queue);
      expect(JSON.parse(reply.content.toString())).toEqual({
        status: 'INVALID_ARGUMENT',
        message: `The body must be at most ${most} bytes.`,
      });
    }
    // One byte less, and it waits for its turn like any other.
    ask(524_288);
    await eventually(async () => (await inFlight('users.queries')) === 2);
  });

  it('leave nothing in memory while the broker takes no letters, and stop their queue', async () => {
    const warned = jest.spyOn(Logger.prototype, 'warn');
    const before = bytesHeld();
    const refused = await settled('refused');
    await users.channel.unbindQueue(REFUSED, 'dead', REFUSED);
    try {
      for (let number = 0; number < PLACES; number++) publish(LARGE);
      await eventually(() => users.server.check()?.startsWith('users.commands.1 is not consumed'));
      expect(await inFlight('users.commands.1')).toBeGreaterThanOrEqual(16);
      // The publisher is in this process, and its last bodies may be on their way.
      await eventually(() => bytesHeld() - before < 8 * MEBIBYTE, 10_000);
      const stops = warned.mock.calls.filter(([line]: unknown[]) => (line as { msg: string }).msg === 'a queue is not consumed');
      expect(stops).toMatchObject([[{ queue: 'users.commands.1', held: 16 }]]);
    } finally {
      warned.mockRestore();
      await users.channel.bindQueue(REFUSED, 'dead', REFUSED);
    }
    await eventually(async () => (await settled('refused')) === refused + PLACES);
    await eventually(() => users.server.check() === undefined);
  });
});

/** After a full collection. */
function bytesHeld(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().arrayBuffers;
}
