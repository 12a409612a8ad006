import { once, type EventEmitter } from 'node:events';
import type { Channel } from 'amqplib';
import type { Registry } from 'prom-client';
import { AddUsers } from '@app/contracts/users.add';
import { Authenticate } from '@app/contracts/users.authenticate';
import type { RabbitConnection } from '@app/amqp/connection/connection';
import { openConnection } from '@app/amqp/connection/open-connection';
import { eventually } from '@app/testing/eventually';
import { metricValue } from '@app/testing/metric-value';
import type { PrivateServer } from '@app/testing/system/private-server';
import type { UsersHandlers } from '@app/testing/system/users-stub';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import type { ConsumedQueue } from '../src/topology/consumed-queues';
import { declareTopology } from '../src/topology/declare-topology';
import { CALL, RecoveryBench } from './recovery-bench';
import { BODY, failure } from './stubbed-users';

/** Far less than calls wait for the end of an alarm. */
const AT_ONCE_MS = 1000;

describe('recovery', () => {
  let bench: RecoveryBench;
  let broker: PrivateServer;
  let client: RabbitClient;
  let server: RabbitServer;
  let handlers: UsersHandlers;
  let metrics: Registry;

  beforeAll(async () => {
    bench = await RecoveryBench.start();
    ({ broker, client, server, handlers, metrics } = bench);
  });
  afterAll(() => bench?.stop());

  it('a killed connection of the client: the outcome of its calls is unknown at once', async () => {
    const { call, letGo } = await bench.running();
    const outcome = failure(call).then((error) => ({ error, at: performance.now() }));
    await bench.killConnections('gateway calling');
    const killedAt = performance.now();
    const { error, at } = await outcome;
    expect(error.status).toBe('DEADLINE_EXCEEDED');
    // Not at the deadline.
    expect(at - killedAt).toBeLessThan(CALL.timeoutMs / 2);
    letGo();
    await bench.expectCallsWork();
  });

  it('a killed connection of the client: a query that comes in that moment is not asked twice', async () => {
    handlers.authenticate = () => ({ known: true });
    const { channel } = (client as unknown as { caller: { channel: EventEmitter } }).caller;
    const askedAgain = () => metricValue(metrics, 'rabbitmq_queries_repeated_total', { reason: 'lost' });
    const before = await askedAgain();
    // On a slow machine there may be no other connection in time.
    await eventually(async () => {
      const answer = once(channel, 'lost').then(() =>
        client.call(Authenticate, { apiKey: 'key', tokenHash: 'a'.repeat(64) }, CALL),
      );
      answer.catch(() => undefined);
      await bench.killConnections('gateway calling');
      return answer;
    });
    expect(await askedAgain()).toBe(before);
    await bench.expectCallsWork();
  });

  it('a killed publishing connection of the service: the reply waits for the next one', async () => {
    const { call, letGo } = await bench.running();
    const { publishing } = (server as unknown as { connections: { publishing: RabbitConnection } }).connections;
    // In the event itself, because the connection may be back before the test can look.
    const lost = once(publishing, 'state').then(letGo);
    await bench.killConnections('users publishing');
    await lost;
    expect((await call).parse()).toEqual({ redelivered: false });
    await bench.expectCallsWork();
  });

  it('a killed consuming connection of the service: the command is delivered again', async () => {
    const { call, letGo, runs } = await bench.running();
    await bench.killConnections('users consuming');
    await eventually(() => runs() === 2);
    letGo();
    await call;
    await bench.expectCallsWork();
  });

  it('a channel that the broker closes: the next channel consumes', async () => {
    const { call, letGo, runs } = await bench.running();
    const connection = server.unwrap();
    const { consumers } = server as unknown as { consumers: Map<ConsumedQueue, { consuming: { acks: { channel: Channel } } }> };
    const [, consumer] = [...consumers].find(([{ name }]) => name === 'users.calls')!;
    // An unknown delivery tag makes the broker close the channel.
    consumer.consuming.acks.channel.ack({ fields: { deliveryTag: 999 } } as never);
    await eventually(() => runs() === 2);
    letGo();
    await call;
    await bench.expectCallsWork();
    // Only the channel was lost, not its connection.
    expect(server.unwrap()).toBe(connection);
  });

  it('a deleted queue: not ready, and consumed again when it is declared again', async () => {
    const model = await openConnection({ url: broker.url, name: 'test' });
    const channel = await model.createChannel();
    await channel.deleteQueue('users.calls');
    await eventually(() => server.check() === 'the queue users.calls does not exist in the broker: run "npm run setup"');
    expect(await failure(client.call(AddUsers, BODY, CALL))).toMatchObject({ status: 'UNAVAILABLE' });
    await declareTopology(broker.url);
    await bench.expectCallsWork();

    const { caller, connection } = client as unknown as { caller: { replyQueue: string }; connection: RabbitConnection };
    const { replyQueue } = caller;
    const { call, letGo } = await bench.running();
    // Only the connection that owns an exclusive queue may delete it.
    const own = await connection.current!.createChannel();
    await own.deleteQueue(replyQueue);
    expect((await failure(call)).status).toBe('DEADLINE_EXCEEDED');
    letGo();
    await bench.expectCallsWork();
    await model.close();
  });

  it('a reply queue that the broker forgets without a word: calls work again', async () => {
    const { call, letGo } = await bench.running();
    const { caller } = client as unknown as { caller: { replyQueue: string } };
    const { replyQueue } = caller;
    // As a node of RabbitMQ 4.0 does with Khepri after a freeze. Version 3 takes the name, and 4 the queue. Tabs: an order ends at a space.
    const deleted = (which: string) => `rabbit_amqqueue:internal_delete(${which},<<"test">>)`;
    const found = `N=rabbit_misc:r(<<"/">>,queue,<<"${replyQueue}">>),{ok,Q}=rabbit_amqqueue:lookup(N)`;
    const forget = `${found},try\t${deleted('N')}\tcatch\t_:_->${deleted('Q')}\tend.`;
    await broker.order(`rabbitmqctl eval ${forget}`);
    letGo();
    expect((await failure(call)).status).toBe('DEADLINE_EXCEEDED');
    await eventually(() => caller.replyQueue !== replyQueue);
    await bench.expectCallsWork();
  });

  it('a memory alarm of a moment: calls wait for its end, and are executed once', async () => {
    const executed: (string | undefined)[] = [];
    handlers.add = (_, { messageId }) => void executed.push(messageId);
    const asked: string[] = [];
    const answers: Promise<unknown>[] = [];
    const ask = () => {
      const messageId = `call ${asked.length}`;
      asked.push(messageId);
      const answer = client.call(AddUsers, BODY, { ...CALL, messageId });
      answer.catch(() => undefined);
      answers.push(answer);
    };
    const { connection } = client as unknown as { connection: RabbitConnection };
    // Noted in the event: from one look to the next a busy machine may take as long as the alarm.
    let wasBlocked = false;
    const blocked = once(connection, 'state').then(([state]) => {
      wasBlocked = state === 'blocked';
      ask();
    });
    // Again when a busy machine stands still for as long as the alarm lasts.
    await eventually(async () => {
      let isOver = false;
      // For as long as RabbitMQ needs to look at its memory again.
      const alarm = broker
        .order(
          'rabbitmqctl eval A={resource_limit,memory,node()},rabbit_alarm:set_alarm({A,[]}),timer:sleep(1000),rabbit_alarm:clear_alarm(A).',
        )
        .finally(() => (isOver = true));
      // The broker blocks a connection when it publishes.
      await eventually(() => (ask(), wasBlocked || isOver));
      await alarm;
      return wasBlocked;
    });
    await blocked;
    await Promise.all(answers);
    expect(executed.sort()).toEqual(asked.sort());
  });

  it('a memory alarm that stays: refused when calls have waited, then at once, and nothing is executed late', async () => {
    const executed: unknown[] = [];
    handlers.add = (_, { messageId }) => executed.push(messageId);
    await broker.order('memory alarm on');
    // The broker reports that it blocks only after something is published.
    const first = await failure(client.call(AddUsers, BODY, { ...CALL, timeoutMs: 500, messageId: 'first' }));
    expect(first.status).toBe('DEADLINE_EXCEEDED');
    await eventually(() => client.state === 'blocked');
    const waited = await failure(client.call(AddUsers, BODY, { ...CALL, messageId: 'waited' }));
    expect(waited.status).toBe('UNAVAILABLE');
    const tookMs: number[] = [];
    for (let time = 0; time < 3; time++) {
      const started = performance.now();
      const refused = await failure(client.call(AddUsers, BODY, { ...CALL, messageId: 'refused' }));
      expect(refused.status).toBe('UNAVAILABLE');
      tookMs.push(performance.now() - started);
    }
    // A busy machine delays some of them.
    expect(Math.min(...tookMs)).toBeLessThan(AT_ONCE_MS);
    expect(client.check()).toBe('the broker is short of memory or disk');

    await broker.order('memory alarm off');
    await bench.ready();
    await client.call(AddUsers, BODY, { ...CALL, messageId: 'afterwards' });
    expect(executed).toEqual(['afterwards']);
  });

  it('a frozen broker: DEADLINE_EXCEEDED at the deadline, and calls work when the broker continues', async () => {
    handlers.add = () => ({ fine: true });
    await broker.order('pause');
    const started = performance.now();
    const errors = await Promise.all(
      Array.from({ length: 20 }, () => failure(client.call(AddUsers, BODY, { ...CALL, timeoutMs: 300 }))),
    );
    expect(errors.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 'DEADLINE_EXCEEDED'));
    // Before the silence of 8 s that ends the connection.
    expect(performance.now() - started).toBeLessThan(5000);
    await broker.order('resume');
    await bench.expectCallsWork();
  });

  it.each(['stop', 'kill'] as const)('a broker that ends (%s) and restarts', async (way) => {
    // A quorum queue that was declared a moment ago may come back without its leader.
    const { call, letGo } = await bench.running();
    const outcome = failure(call);
    await broker.order(way);
    expect((await outcome).status).toBe('DEADLINE_EXCEEDED');
    letGo();
    await eventually(() => client.state === 'down');
    const started = performance.now();
    expect((await failure(client.call(AddUsers, BODY, CALL))).status).toBe('UNAVAILABLE');
    // At once, and not at the deadline.
    expect(performance.now() - started).toBeLessThan(CALL.timeoutMs / 2);
    for (const one of [client, server]) expect(one.check()).toMatch(/^not connected to the broker: .*127\.0\.0\.1:\d+ \(.*ECONN/);
    await broker.order('start');
    await bench.expectCallsWork();
  });

  it('closes in time without a broker', async () => {
    const { letGo } = await bench.running(2000);
    await broker.order('pause');
    const other = new RabbitClient({ connection: { url: broker.url, name: 'other' }, metrics });
    await other.connect();
    const started = performance.now();
    letGo();
    await Promise.all([other.close(), client.close(), server.close()]);
    expect(performance.now() - started).toBeLessThan(7000);
    await broker.order('resume');
  });
});
