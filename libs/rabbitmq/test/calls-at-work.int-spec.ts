import type { Registry } from 'prom-client';
import { AddUsers } from '@app/contracts/users.add';
import { Exists } from '@app/contracts/users.exists';
import { within } from '@app/runtime/within';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { metricValue } from '@app/testing/metric-value';
import type { UsersHandlers } from '@app/testing/system/users-stub';
import { RabbitClient } from '../src/client/rabbit.client';
import type { AckBatcher } from '../src/delivery/ack-batcher';
import type { ConsumedQueue } from '../src/topology/consumed-queues';
import { CallsBench } from './calls-bench';
import { BODY, CALL, failure } from './stubbed-users';

describe('calls at work', () => {
  let bench: CallsBench;
  let client: RabbitClient;
  let handlers: UsersHandlers;
  let metrics: Registry;

  beforeAll(async () => {
    bench = await CallsBench.start();
    ({ client, handlers, metrics } = bench);
  });
  afterAll(() => bench?.stop());
  beforeEach(() => bench.reset());

  it('handles no more at once than the prefetch', async () => {
    await bench.server?.close();
    await bench.startServer(3);
    let running = 0;
    let most = 0;
    const { open, opened } = gate();
    handlers.add = async () => {
      most = Math.max(most, ++running);
      await opened;
      running--;
    };
    const calls = Array.from({ length: 10 }, () => client.call(AddUsers, BODY, CALL));
    await eventually(() => running === 3);
    // A query afterwards proves that the broker had the time to deliver more.
    handlers.exists = () => ({});
    await client.call(Exists, {}, CALL);
    expect(running).toBe(3);
    open();
    await Promise.all(calls);
    expect(most).toBe(3);
  });

  it('forgets what waits for its turn when its channel ends, because the broker delivers it again', async () => {
    await bench.server?.close();
    await bench.startServer(2);
    const { open, opened } = gate();
    handlers.add = () => opened;
    const calls = Array.from({ length: 10 }, () => client.call(AddUsers, BODY, CALL));
    const ofCalls = (metric: string) => metricValue(metrics, metric, { queue: 'users.calls' });
    await eventually(async () => (await ofCalls('rabbitmq_deliveries_in_flight')) === calls.length);
    const { consumers } = bench.server as unknown as { consumers: Map<ConsumedQueue, { consuming: { acks: AckBatcher } }> };
    const [, { consuming }] = [...consumers].find(([{ name }]) => name === 'users.calls')!;
    // An unknown delivery tag makes the broker close the channel.
    consuming.acks.channel.ack({ fields: { deliveryTag: 999 } } as never);
    await eventually(async () => (await ofCalls('rabbitmq_redeliveries_total')) === calls.length);
    // The two that ran before are running still.
    expect(await ofCalls('rabbitmq_deliveries_in_flight')).toBe(2 + calls.length);
    open();
    await Promise.all(calls);
  });

  it('handles a light command of another key while heavy ones wait that are more than there are places', async () => {
    const PLACES = 4;
    await bench.server?.close();
    await bench.startServer(PLACES);
    const { open, opened } = gate();
    let running = 0;
    handlers.add = async ({ users }) => {
      if (users.length === 1) return { light: true };
      running++;
      await opened;
      return {};
    };
    // So large that no two of them share a message.
    const users = Array.from({ length: 800 }, (_, n) => ({ userId: String(n), name: 'n'.repeat(200) }));
    const heavy = Array.from({ length: 2 * PLACES }, () => client.call(AddUsers, { ...BODY, users }, CALL));
    const inFlight = () => metricValue(metrics, 'rabbitmq_deliveries_in_flight', { queue: 'users.calls' });
    await eventually(async () => (await inFlight()) >= PLACES);
    const answer = await client.call(AddUsers, BODY, { ...CALL, apiKey: 'another key' });
    expect(answer.parse()).toEqual({ light: true });
    expect(running).toBeGreaterThan(0);
    expect(running).toBeLessThan(PLACES);
    open();
    await Promise.all(heavy);
  });

  it('answers 504 at the deadline, and executes nothing after it', async () => {
    const expired = () => metricValue(metrics, 'rabbitmq_deliveries_total', { pattern: AddUsers.pattern, outcome: 'expired' });
    const [executed, statuses, tookMs] = [new Set<string>(), new Set<string>(), [] as number[]];
    handlers.add = (_, { messageId }) => executed.add(messageId ?? '');
    handlers.exists = () => executed.add('query');
    // Again when a busy machine starts the server after the broker has dropped the command, a second after its deadline.
    await eventually(async () => {
      await bench.server?.close();
      const started = performance.now();
      const late = [
        client.call(AddUsers, BODY, { ...CALL, timeoutMs: 200, messageId: 'late' }),
        client.call(Exists, {}, { ...CALL, timeoutMs: 200 }),
      ];
      for (const { status } of await Promise.all(late.map(failure))) statuses.add(status);
      tookMs.push(performance.now() - started);
      await bench.startServer();
      await client.call(AddUsers, BODY, { ...CALL, messageId: 'in time' });
      return expired();
    });
    expect([...statuses]).toEqual(['DEADLINE_EXCEEDED']);
    expect(Math.min(...tookMs)).toBeGreaterThanOrEqual(198);
    expect([...executed]).toEqual(['in time']);
    expect(await expired()).toBe(1);
  });

  it('lets running handlers finish and their replies arrive when it closes', async () => {
    const { open, opened } = gate();
    const running = gate();
    handlers.add = async () => {
      running.open();
      await opened;
      return { done: true };
    };
    const call = client.call(AddUsers, BODY, CALL);
    await running.opened;
    const closed = bench.server?.close();
    // The only sign of waiting is that close() has not resolved.
    expect(await within(200, closed ?? Promise.resolve())).toBe(false);
    open();
    expect((await call).parse()).toEqual({ done: true });
    await closed;

    handlers.add = (_, { redelivered }) => ({ redelivered });
    await bench.startServer();
    expect((await client.call(AddUsers, BODY, CALL)).parse()).toEqual({ redelivered: false });
  });

  it('lets pending calls finish when the client closes, and refuses new ones', async () => {
    const other = new RabbitClient({ connection: { url: bench.broker.url, name: 'other' }, metrics });
    await other.connect();
    await eventually(() => other.check() === undefined);
    const { open, opened } = gate();
    handlers.add = async () => {
      await opened;
      return { done: true };
    };
    const call = other.call(AddUsers, BODY, CALL);
    const closed = other.close();
    expect((await failure(other.call(AddUsers, BODY, CALL))).status).toBe('UNAVAILABLE');
    open();
    expect((await call).parse()).toEqual({ done: true });
    await closed;
    expect(other.state).toBe('down');
  });
});
