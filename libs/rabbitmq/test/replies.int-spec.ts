import { Registry } from 'prom-client';
import { openConnection } from '@app/amqp/connection/open-connection';
import { AddUsers } from '@app/contracts/users.add';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { metricValue } from '@app/testing/metric-value';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { BASIC_ACK, type FaultProxy, type Link } from '../../../test/faults/harness/fault-proxy';
import type { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import { BODY, CALL, failure } from './stubbed-users';
import { UsersBehindProxy } from './users-behind-proxy';

const MARK = 'the reply that does not arrive';
const LATE = 'late.replies';
/** Less than a queue counts as silent. */
const SOON_MS = 15_000;

/** Replies and acks go over two connections: the broker may have the ack of a command whose reply it has lost. */
describe('a confirmed reply to a command', () => {
  let broker: TestBroker;
  let users: UsersBehindProxy;
  let proxy: FaultProxy;
  let client: RabbitClient;
  let server: RabbitServer;
  const metrics = new Registry();
  const handlers = { authenticate: () => ({}), exists: () => ({}) } as unknown as UsersHandlers;

  beforeAll(async () => {
    broker = await createTestBroker();
    users = await UsersBehindProxy.start(broker.url, handlers, { confirmReplies: true, metrics, drainTimeoutMs: 200 });
    ({ proxy, client, server } = users);
  });
  beforeEach(() => eventually(() => server.check() === undefined));
  afterEach(() => proxy.heal());
  afterAll(async () => {
    await users?.close();
    await broker?.drop();
  });

  const counted = (metric: string) => metricValue(metrics, metric);
  const inFlight = () => counted('rabbitmq_deliveries_in_flight');

  /** Sum of the time that deliveries took. */
  const seconds = async () => {
    const { values } = await metrics.getSingleMetric('rabbitmq_delivery_seconds')!.get();
    return values.find((one) => (one as { metricName?: string }).metricName?.endsWith('_sum'))?.value ?? 0;
  };

  /** Keeps the first reply and all that follows on its connection. @returns resolves with that connection */
  const holdReply = () =>
    new Promise<Link>((resolve) => {
      let held: Link | undefined;
      proxy.inspector = (bytes, direction, link) => {
        if (held || direction !== 'toServer' || !bytes.includes(MARK)) return 'pass';
        resolve((held = link));
        return 'hold';
      };
    });

  it('is written over the next channel when it was returned and the connection ends meanwhile', async () => {
    handlers.add = () => ({ MARK });
    let publishing: Link | undefined;
    proxy.inspector = (bytes, direction, link) => {
      if (direction === 'toServer' && bytes.includes(MARK)) publishing = link;
      return 'pass';
    };
    const model = await openConnection({ url: broker.url, name: 'late caller' });
    try {
      const channel = await model.createChannel();
      const properties = { persistent: true, headers: { 'x-api-key': CALL.apiKey }, correlationId: '1', replyTo: LATE };
      const returned = await counted('rabbitmq_returned_total');
      channel.publish('commands', AddUsers.pattern, Buffer.from(JSON.stringify(BODY)), properties);
      await eventually(async () => (await counted('rabbitmq_returned_total')) > returned, undefined, 1);
      proxy.refusing = true;
      publishing!.end('reset');
      await channel.assertQueue(LATE, { durable: false, arguments: { 'x-queue-type': 'classic' } });
      await channel.bindQueue(LATE, 'replies', LATE);
      // After these two waits it would have been written again.
      const attempts = await counted('rabbitmq_reconnects_total');
      await eventually(async () => (await counted('rabbitmq_reconnects_total')) > attempts + 1);
      proxy.heal();
      await eventually(async () => (await channel.checkQueue(LATE)).messageCount === 1, SOON_MS);
    } finally {
      await model.close();
    }
  });

  it('is written again when its connection ends before the broker has it', async () => {
    let handled = 0;
    handlers.add = () => ({ MARK, handled: ++handled });
    const reply = holdReply();
    const answer = client.call(AddUsers, BODY, CALL);
    (await reply).end('reset');
    expect((await answer).parse()).toEqual({ MARK, handled: 1 });
  });

  it('comes from another process when the first one ends before the broker has it', async () => {
    handlers.add = () => ({ MARK });
    const reply = holdReply();
    const answer = client.call(AddUsers, BODY, CALL);
    await reply;
    // The broker has everything that was sent before this command is delivered.
    const { open: isDelivered, opened: delivered } = gate();
    handlers.add = () => (isDelivered(), {});
    const later = client.call(AddUsers, BODY, CALL);
    await delivered;
    proxy.refusing = true;
    proxy.cut('reset');
    const add: UsersHandlers['add'] = (_, { redelivered }) => ({ redelivered });
    const options = { connection: { url: broker.url, name: 'other users' }, metrics: new Registry() };
    const other = await startUsersStub(options, { ...handlers, add });
    try {
      expect((await answer).parse()).toEqual({ redelivered: true });
      await later;
    } finally {
      await other.close();
    }
  });

  it('keeps no place of its command for longer than a second while no confirm comes', async () => {
    handlers.add = () => ({ MARK });
    const reply = holdReply();
    const answer = client.call(AddUsers, BODY, CALL);
    await reply;
    expect(await inFlight()).toBe(1);
    await eventually(async () => (await inFlight()) === 0);
    proxy.heal();
    expect((await answer).parse()).toEqual({ MARK });
  });

  /** Nothing is known of a queue over a new connection. */
  const reconnect = async () => {
    proxy.cut('reset');
    await eventually(() => server.check() !== undefined, undefined, 1);
    await eventually(() => server.check() === undefined);
  };

  /** Whether the next command keeps its place until its reply is confirmed. */
  const isWaitedFor = async () => {
    const reply = holdReply();
    const answer = client.call(AddUsers, BODY, CALL);
    await reply;
    const places = await inFlight();
    proxy.heal();
    await answer;
    return places === 1;
  };

  /** A call whose reply the broker confirms after its command has left its place. */
  const callWithLateConfirm = async () => {
    const reply = holdReply();
    const answer = client.call(AddUsers, BODY, CALL);
    await reply;
    await eventually(async () => (await inFlight()) === 0);
    proxy.heal();
    return answer;
  };

  it('is waited for again at a queue whose confirm was only late', async () => {
    handlers.add = () => ({ MARK });
    await reconnect();
    await callWithLateConfirm();
    await eventually(isWaitedFor, SOON_MS);
  });

  it('is not waited for again at a queue whose confirm is late each time', async () => {
    handlers.add = () => ({ MARK });
    await reconnect();
    await callWithLateConfirm();
    await eventually(isWaitedFor, SOON_MS);
    await callWithLateConfirm();
    // Written after the late confirm, over the same connection.
    expect(await isWaitedFor()).toBe(false);
    expect(await isWaitedFor()).toBe(false);
  });

  it('is waited for again over the next connection', async () => {
    handlers.add = () => ({ MARK });
    const reply = holdReply();
    const answer = failure(client.call(AddUsers, BODY, { ...CALL, timeoutMs: 2000 }));
    const link = await reply;
    await eventually(async () => (await inFlight()) === 0);
    link.end('reset');
    await eventually(() => server.check() !== undefined, undefined, 1);
    await eventually(() => server.check() === undefined);
    await eventually(isWaitedFor, SOON_MS);
    await answer;
  });

  it('is not waited for again at a queue that has just not confirmed one', async () => {
    handlers.add = () => ({ MARK });
    await client.call(AddUsers, BODY, CALL);
    await eventually(async () => (await inFlight()) === 0);
    let publishing: Link | undefined;
    proxy.inspector = (bytes, direction, link) => {
      if (direction === 'toServer' && bytes.includes(MARK)) publishing = link;
      return link === publishing && direction === 'toClient' && bytes.includes(BASIC_ACK) ? 'hold' : 'pass';
    };
    const tookSeconds: number[] = [];
    for (let call = 0; call < 5; call++) {
      const before = await seconds();
      expect((await client.call(AddUsers, BODY, CALL)).parse()).toEqual({ MARK });
      await eventually(async () => (await inFlight()) === 0);
      tookSeconds.push((await seconds()) - before);
    }
    // The first one is waited for, for a second. A busy machine may delay another one.
    expect(tookSeconds.filter((took) => took > 0.9).length).toBeLessThan(3);
  });
});
