import { COMMANDS_TYPE, MOST_COMMANDS } from '@app/amqp/messages/command-format';
import { pack } from '@app/amqp/messages/packed';
import { repliesIn } from '@app/amqp/messages/reply-format';
import { AddNotification } from '@app/contracts/notifications.add';
import { AddUsers } from '@app/contracts/users.add';
import { fillQueue } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { callQueue, refusedQueue } from '../src/topology/topology';
import { bodyOf, CALLS, SharingBench } from './sharing-bench';

describe('commands that share a message which is refused', () => {
  let bench: SharingBench;
  beforeAll(async () => (bench = await SharingBench.start()));
  afterAll(() => bench.stop());
  beforeEach(() => bench.beforeEach());
  afterEach(() => bench.afterEach());

  it('are sent again one by one, when the consumer is of a version that cannot read them', async () => {
    const earlier = await bench.broker.model.createChannel();
    const types: unknown[] = [];
    await earlier.consume(CALLS, (message) => {
      if (!message) return;
      const { type, correlationId, replyTo: to } = message.properties as unknown as Record<string, string>;
      types.push(type);
      const status = type === COMMANDS_TYPE ? 'INVALID_ARGUMENT' : 'OK';
      const body = Buffer.from(JSON.stringify({ message: 'No.', type }));
      earlier.publish('replies', to, body, { correlationId, headers: { 'x-status': status } });
      earlier.ack(message);
    });
    const answers = await Promise.all([bench.call('a'), bench.call('b')]);
    expect(answers).toEqual(Array(2).fill({ message: 'No.', type: AddUsers.pattern }));
    expect(types).toEqual([COMMANDS_TYPE, AddUsers.pattern, AddUsers.pattern]);
    await earlier.close();
  });

  it.each(['UNAVAILABLE', 'RESOURCE_EXHAUSTED', 'PERMISSION_DENIED', 'UNAUTHENTICATED', 'NOT_FOUND'] as const)(
    'are of unknown outcome, when each is answered %s after it was sent again',
    async (status) => {
      // Another consumer may have executed the shared message before it ended.
      const earlier = await bench.broker.model.createChannel();
      await earlier.consume(CALLS, (message) => {
        if (!message) return;
        const { correlationId, replyTo: to } = message.properties as unknown as Record<string, string>;
        earlier.publish('replies', to, Buffer.from('{"message":"No."}'), { correlationId, headers: { 'x-status': status } });
        earlier.ack(message);
      });
      await bench.client.close();
      await bench.startClient();
      expect(await Promise.all([bench.call('a'), bench.call('b')])).toEqual(Array(2).fill('DEADLINE_EXCEEDED'));
      await earlier.close();
    },
  );

  it('are refused as one, when they cannot be read, and executed beside such messages', async () => {
    const executed: string[] = [];
    bench.handlers.add = ({ organizationId }) => void executed.push(organizationId);
    const body = Buffer.from(JSON.stringify(bodyOf('never')));
    const good = { head: ['good', 'good', { 'x-api-key': 'key' }], body };
    const unreadable = [
      Buffer.from('junk'),
      pack([good, { head: ['bad', null, {}], body }]),
      pack([good, good]).subarray(0, -1),
      pack(Array(MOST_COMMANDS + 1).fill(good)),
    ];
    await bench.startServer();
    await bench.publishShared(['a', 'b']);
    for (const [index, content] of unreadable.entries())
      await bench.publish('calls', content, {
        type: COMMANDS_TYPE,
        replyTo: bench.replyTo,
        correlationId: `unreadable ${index}`,
        userId: bench.account,
      });
    await bench.publishShared(['c', 'd']);
    const answers = () =>
      bench.replies.flatMap(repliesIn).map(({ correlationId, reply }) => [correlationId, reply.headers['x-status']]);
    await eventually(() => answers().length === 4 + unreadable.length);
    expect(answers().toSorted()).toEqual([
      ...['a', 'b', 'c', 'd'].map((id) => [id, 'OK']),
      ...unreadable.map((_, index) => [`unreadable ${index}`, 'INVALID_ARGUMENT']),
    ]);
    expect(executed.toSorted()).toEqual(['a', 'b', 'c', 'd']);
  });

  describe('that the broker does not take', () => {
    const sharing = async () => {
      const { values } = (await bench.clientMetrics.getSingleMetric('rabbitmq_commands_per_message')!.get()) as {
        values: { metricName?: string; value: number }[];
      };
      const sum = (name: string) =>
        values.filter(({ metricName }) => metricName?.endsWith(name)).reduce((all, { value }) => all + value, 0);
      return sum('_sum') - sum('_count');
    };
    /** Three commands in one message. */
    const three = async (add: () => Promise<unknown>) => {
      const before = await sharing();
      const answers = await Promise.allSettled([add(), add(), add()]);
      expect((await sharing()) - before).toBe(2);
      return answers.map((answer) => {
        const { status, cause } = (answer as PromiseRejectedResult).reason as { status: string; cause?: Error };
        return `${status}: ${cause?.message}`;
      });
    };
    const options = { apiKey: 'key', requestId: 'r', timeoutMs: 20_000 };

    it('have the same answer when it returns their message', async () => {
      const unbound = { ...AddUsers, pattern: 'users.add.v99' };
      const answers = await three(() => bench.client.call(unbound, bodyOf('o'), options));
      expect(answers).toEqual(Array(3).fill('UNAVAILABLE: no queue is bound for it'));
    });

    it('have the same answer when it refuses their message', async () => {
      const body = { organizationId: 'o', documentId: 'd', actionUser: { userId: 'u' }, displayHeadlineMessageTemplate: 't' };
      await fillQueue(bench.broker, callQueue('notifications'));
      const answers = await three(() => bench.client.call(AddNotification, body, options));
      expect(answers).toEqual(Array(3).fill('UNAVAILABLE: its queue is full'));
    });
  });

  it('are not read from other services', async () => {
    let handled = 0;
    bench.handlers.add = () => void handled++;
    await bench.startServer();
    await bench.publishShared(['a', 'b'], 'commands');
    await eventually(() => bench.replies.length === 1);
    expect(bench.replies[0].properties.headers).toEqual({ 'x-status': 'INVALID_ARGUMENT' });
    expect(handled).toBe(0);
    expect((await bench.channel.checkQueue(refusedQueue('users'))).messageCount).toBe(0);
  });
});
