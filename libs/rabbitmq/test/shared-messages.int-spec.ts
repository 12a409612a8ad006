import type { Channel } from 'amqplib';
import { COMMANDS_TYPE, unpackCommands } from '@app/amqp/messages/command-format';
import { ApiError } from '@app/contracts/error';
import { AddUsers } from '@app/contracts/users.add';
import { eventually } from '@app/testing/eventually';
import { BASIC_ACK, FaultProxy, type Link } from '../../../test/faults/harness/fault-proxy';
import type { DeliveryContext } from '../src/delivery/delivery-context';
import { suspectQueue } from '../src/topology/topology';
import { CALLS, SharingBench } from './sharing-bench';

describe('commands that share a message', () => {
  let bench: SharingBench;
  beforeAll(async () => (bench = await SharingBench.start()));
  afterAll(() => bench.stop());
  beforeEach(() => bench.beforeEach());
  afterEach(() => bench.afterEach());

  it('have their own tenant, identity, deadline and answer', async () => {
    const seen = new Map<string, DeliveryContext>();
    bench.handlers.add = ({ organizationId }, context) => {
      seen.set(organizationId, context);
      if (organizationId === 'refused') throw new ApiError('NOT_FOUND', 'No.');
      return { organizationId };
    };
    await bench.startServer();
    const answers = await Promise.all([
      bench.call('one', { apiKey: 'tenant 1', idempotencyKey: 'i', messageId: 'm' }),
      bench.call('refused', { apiKey: 'tenant 2' }),
      bench.call(''),
      bench.call('three'),
    ]);
    expect(answers).toEqual([{ organizationId: 'one' }, 'NOT_FOUND', 'INVALID_ARGUMENT', { organizationId: 'three' }]);
    expect(bench.published.map(({ properties }) => properties.type)).toEqual([COMMANDS_TYPE]);
    expect(unpackCommands(bench.published[0].content)).toHaveLength(4);
    expect(seen.get('one')).toMatchObject({
      apiKey: 'tenant 1',
      requestId: 'one',
      idempotencyKey: 'i',
      messageId: 'm',
      pattern: AddUsers.pattern,
      userId: bench.account,
      appId: 'gateway',
      awaited: true,
      redelivered: false,
      deadline: expect.any(Number),
    });
    expect(seen.get('refused')).toMatchObject({ apiKey: 'tenant 2', requestId: 'refused', idempotencyKey: undefined });
  });

  it('are sent over the next channel, when theirs ends in the iteration of their calls', async () => {
    bench.handlers.add = ({ organizationId }) => ({ organizationId });
    await bench.startServer();
    const { channel: calling } = (bench.client as unknown as { caller: { channel: { current?: Channel } } }).caller;
    // Again when the next channel has come too late, on a slow machine.
    await eventually(async () => {
      bench.published = [];
      await eventually(() => bench.client.check() === undefined);
      const ending = calling.current!;
      const calls = new Promise<unknown[]>((resolve) => {
        // Before the client sees the end.
        ending.prependOnceListener('close', () => resolve(Promise.all([bench.call('a'), bench.call('b')])));
      });
      await ending.close();
      expect(await calls).toEqual([{ organizationId: 'a' }, { organizationId: 'b' }]);
      return true;
    }, 20_000);
    expect(bench.published.map(({ properties }) => properties.type)).toEqual([COMMANDS_TYPE]);
  });

  it('are acknowledged together, when the last one is settled', async () => {
    const redelivered: string[] = [];
    let hang = true;
    bench.handlers.add = ({ organizationId }, context) => {
      if (context.redelivered) redelivered.push(organizationId);
      return organizationId === 'slow' && hang ? new Promise(() => undefined) : {};
    };
    await bench.startServer();
    await bench.publishShared(['quick', 'slow']);
    await eventually(() => bench.replies.length === 1);
    await bench.server?.close();
    hang = false;
    await bench.startServer();
    await eventually(() => bench.replies.length >= 2);
    expect(redelivered).toEqual(['quick', 'slow']);
    await eventually(async () => (await bench.channel.checkQueue(CALLS)).messageCount === 0);
  });

  it('are handled alone, each as a message of its own, after two deliveries in vain', async () => {
    await bench.publishShared(['a', 'b', 'c']);
    await bench.crash();
    await bench.crash();
    let running = 0;
    const most: number[] = [];
    bench.handlers.add = async ({ organizationId }, context) => {
      most.push(++running);
      await bench.channel.checkQueue(CALLS);
      running--;
      return { organizationId, messageId: context.messageId, userId: context.userId };
    };
    await bench.startServer();
    await eventually(() => bench.replies.length === 3);
    expect(most).toEqual([1, 1, 1]);
    const answers = bench.replies.map(({ content, properties }) => [properties.correlationId, JSON.parse(content.toString())]);
    expect(answers).toEqual(['a', 'b', 'c'].map((id) => [id, { organizationId: id, messageId: id, userId: bench.account }]));
    const { messageCount } = await bench.channel.checkQueue(suspectQueue('users'));
    expect(messageCount).toBe(0);
  });

  it('are all suspects of their own, and their message is acknowledged, before the first of them may end the process', async () => {
    await bench.publishShared(['a', 'b', 'c']);
    await bench.crash();
    await bench.crash();
    const proxy = await FaultProxy.to(bench.broker.url);
    let publishing: Link | undefined;
    proxy.inspector = (bytes, direction, link) => {
      if (direction === 'toServer' && bytes.includes('users publishing')) publishing = link;
      return link === publishing && direction === 'toClient' && bytes.includes(BASIC_ACK) ? 'hold' : 'pass';
    };
    const handled: string[] = [];
    bench.handlers.add = ({ organizationId }) => void handled.push(organizationId);
    try {
      await bench.startServer(proxy.through(bench.broker.url));
      // The broker has all of them, this process has the first one, and no confirm has come.
      await eventually(async () => (await bench.channel.checkQueue(suspectQueue('users'))).messageCount === 2);
      await expect(eventually(() => handled.length > 0, 300)).rejects.toThrow();
      proxy.heal();
      await eventually(() => bench.replies.length === 3);
    } finally {
      proxy.heal();
      await bench.server?.close();
      bench.server = undefined;
      await proxy.close();
    }
    expect(handled).toEqual(['a', 'b', 'c']);
    expect((await bench.channel.checkQueue(CALLS)).messageCount).toBe(0);
  });
});
