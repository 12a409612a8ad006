import { Registry } from 'prom-client';
import { firstValueFrom } from 'rxjs';
import { ApiError } from '@app/contracts/error';
import { AddNotification } from '@app/contracts/notifications.add';
import { AddUsers, type AddUsersRequest } from '@app/contracts/users.add';
import { Authenticate } from '@app/contracts/users.authenticate';
import { Exists } from '@app/contracts/users.exists';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { declareTopology } from '../src/topology/declare-topology';
import type { DeliveryContext } from '../src/delivery/delivery-context';
import { RabbitClient, type CallOptions } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import { Caller } from '@app/amqp/calls/caller';
import { Reply } from '@app/amqp/messages/reply';
import { within } from '@app/amqp/connection/within';

const BODY: AddUsersRequest = { organizationId: 'o', users: [{ userId: 'u' }] };
const OPTIONS: CallOptions = { apiKey: 'key', requestId: 'request-1', timeoutMs: 5000 };

const unexpected = () => {
  throw new Error('unexpected');
};

/** A promise that the test resolves, so that a handler runs for as long as the test wants. */
function gate() {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open, opened };
}

describe('calls', () => {
  let broker: TestBroker;
  let client: RabbitClient;
  let server: RabbitServer | undefined;
  const handlers: UsersHandlers = { add: unexpected, authenticate: unexpected, exists: unexpected };
  const metrics = new Registry();

  const startServer = async (prefetch = 50) => {
    server = await startUsersStub(
      { connection: { url: broker.url, name: 'users' }, prefetch: { commands: prefetch, queries: prefetch }, metrics },
      handlers,
    );
    await eventually(() => server?.check() === undefined);
  };

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    client = new RabbitClient({ connection: { url: broker.url, name: 'gateway' }, metrics, maxPending: 100 });
    await client.connect();
    await eventually(() => client.check() === undefined);
    await startServer();
  });

  afterAll(async () => {
    await client?.close();
    await server?.close();
    await broker?.drop();
  });

  beforeEach(() => Object.assign(handlers, { add: unexpected, authenticate: unexpected, exists: unexpected }));

  const failure = (call: Promise<unknown>) =>
    call.then(
      () => unexpected(),
      (error: unknown) => error as ApiError,
    );

  it('sends the results of commands that end together in one message, errors after their acks, and each reaches its call', async () => {
    const { open, opened } = gate();
    let arrived = 0;
    handlers.add = async (body) => {
      if (++arrived === 20) open();
      await opened;
      if (body.users[0].userId === '7') throw new ApiError('NOT_FOUND', 'not there');
      return { got: body.users[0].userId };
    };
    const messages = jest.spyOn(Caller.prototype as unknown as { onReply: () => void }, 'onReply');
    const calls = Array.from({ length: 20 }, (_, n) =>
      client.call(AddUsers, { ...BODY, users: [{ userId: String(n) }] }, OPTIONS),
    );
    const answers = await Promise.allSettled(calls);
    const expected = answers.map((_, n) => (n === 7 ? 'not there' : JSON.stringify({ got: String(n) })));
    expect(
      answers.map((one) => (one.status === 'fulfilled' ? one.value.body.toString() : (one.reason as Error).message)),
    ).toEqual(expected);
    expect(messages).toHaveBeenCalledTimes(2);
    messages.mockRestore();
  });

  it('sends a command with its context, and returns the result with its headers', async () => {
    let seen: DeliveryContext | undefined;
    handlers.add = (body, context) => {
      seen = context;
      return new Reply({ got: body.users[0].userId }, { 'x-notification-id': 'ünïcode' });
    };
    const before = Date.now();
    const answer = await client.call(AddUsers, BODY, { ...OPTIONS, messageId: 'm-1', idempotencyKey: 'i-1' });

    expect(answer.body.toString()).toBe('{"got":"u"}');
    expect(answer.parse()).toEqual({ got: 'u' });
    expect(answer.headers).toEqual({ 'x-notification-id': 'ünïcode', 'x-status': 'OK' });
    expect(seen).toMatchObject({
      apiKey: 'key',
      requestId: 'request-1',
      messageId: 'm-1',
      idempotencyKey: 'i-1',
      awaited: true,
      redelivered: false,
      attempt: 1,
      pattern: 'users.add.v1',
      appId: 'gateway',
      userId: new URL(broker.url).username,
    });
    expect(seen?.deadline).toBeGreaterThanOrEqual(before + 5000);
    expect(seen?.deadline).toBeLessThanOrEqual(Date.now() + 5000);
    expect(client.pending).toBe(0);
  });

  it('sends a query that needs no tenant', async () => {
    handlers.authenticate = () => ({ verdict: 'accepted' });
    const request = { apiKey: 'key', tokenHash: 'a'.repeat(64) };
    const answer = await client.call(Authenticate, request, { requestId: 'r', timeoutMs: 5000 });
    expect(answer.parse()).toEqual({ verdict: 'accepted' });
    await expect(firstValueFrom(client.send(Authenticate.pattern, request))).resolves.toEqual({ verdict: 'accepted' });
  });

  it('refuses a call without the tenant it needs', async () => {
    const error = await failure(client.call(Exists, {}, { requestId: 'r', timeoutMs: 5000 }));
    expect(error).toMatchObject({ status: 'INVALID_ARGUMENT', message: 'The header x-api-key must be a string.' });
  });

  it('answers with the error that the handler threw', async () => {
    handlers.add = () => {
      throw new ApiError('NOT_FOUND', 'No such organization.', [{ field: 'organizationId', message: 'is unknown' }]);
    };
    const error = await failure(client.call(AddUsers, BODY, OPTIONS));
    expect(error).toBeInstanceOf(ApiError);
    expect(error.toBody()).toEqual({
      status: 'NOT_FOUND',
      message: 'No such organization.',
      details: [{ field: 'organizationId', message: 'is unknown' }],
    });
  });

  it('validates the body at the consumer', async () => {
    const error = await failure(client.call(AddUsers, { organizationId: 'o' } as AddUsersRequest, OPTIONS));
    expect(error).toMatchObject({ status: 'INVALID_ARGUMENT', message: 'users is required and must be an array' });
  });

  it('answers a bug with a fixed text', async () => {
    handlers.add = async () => {
      throw new Error('secret of ours');
    };
    expect((await failure(client.call(AddUsers, BODY, OPTIONS))).toBody()).toEqual({
      status: 'INTERNAL',
      message: 'Internal error.',
    });
    handlers.add = () => 10n;
    expect((await failure(client.call(AddUsers, BODY, OPTIONS))).toBody()).toEqual({
      status: 'INTERNAL',
      message: 'Internal error.',
    });
  });

  it('says at once that nothing was executed when no queue is bound', async () => {
    const started = performance.now();
    const timeoutMs = 20_000;
    const error = await failure(client.call({ ...AddUsers, pattern: 'users.add.v99' }, BODY, { ...OPTIONS, timeoutMs }));
    expect(error.status).toBe('UNAVAILABLE');
    expect((error.cause as Error).message).toBe('no queue is bound for it');
    // Not at the deadline.
    expect(performance.now() - started).toBeLessThan(timeoutMs / 2);
  });

  it('says at once that nothing was executed when the queue is full', async () => {
    await broker.management.limitQueue('notifications.calls', 1);
    const call = () =>
      client.call(
        AddNotification,
        { organizationId: 'o', documentId: 'd', actionUser: { userId: 'u' }, displayHeadlineMessageTemplate: 't' },
        { ...OPTIONS, timeoutMs: 300 },
      );
    // That queue has no consumer here, and its limit takes effect a moment later.
    const refusals = await eventually(async () => {
      const errors = await Promise.all(Array.from({ length: 10 }, () => failure(call())));
      const found = errors.filter(({ status }) => status === 'UNAVAILABLE');
      return found.length > 0 ? found : undefined;
    });
    expect((refusals?.[0].cause as Error).message).toBe('its queue is full');
  });

  it('refuses calls above the limit of pending calls', async () => {
    const { open, opened } = gate();
    handlers.add = () => opened;
    const calls = Array.from({ length: 100 }, () => client.call(AddUsers, BODY, OPTIONS));
    expect((await failure(client.call(AddUsers, BODY, OPTIONS))).status).toBe('UNAVAILABLE');
    open();
    await Promise.all(calls);
  });

  it('handles no more at once than the prefetch', async () => {
    await server?.close();
    await startServer(3);
    let running = 0;
    let most = 0;
    const { open, opened } = gate();
    handlers.add = async () => {
      most = Math.max(most, ++running);
      await opened;
      running--;
    };
    const calls = Array.from({ length: 10 }, () => client.call(AddUsers, BODY, OPTIONS));
    await eventually(() => running === 3);
    // A query afterwards proves that the broker had the time to deliver more.
    handlers.exists = () => ({});
    await client.call(Exists, {}, OPTIONS);
    expect(running).toBe(3);
    open();
    await Promise.all(calls);
    expect(most).toBe(3);
  });

  it('handles a light command of another key while heavy ones wait that are more than there are places', async () => {
    const PLACES = 4;
    await server?.close();
    await startServer(PLACES);
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
    const heavy = Array.from({ length: 2 * PLACES }, () => client.call(AddUsers, { ...BODY, users }, OPTIONS));
    const inFlight = async () => (await metrics.getSingleMetric('rabbitmq_deliveries_in_flight')!.get()).values;
    await eventually(async () =>
      (await inFlight()).some(({ labels, value }) => labels.queue === 'users.calls' && value >= PLACES),
    );
    const answer = await client.call(AddUsers, BODY, { ...OPTIONS, apiKey: 'another key' });
    expect(answer.parse()).toEqual({ light: true });
    expect(running).toBeGreaterThan(0);
    expect(running).toBeLessThan(PLACES);
    open();
    await Promise.all(heavy);
  });

  it('answers 504 at the deadline, and executes nothing after it', async () => {
    await server?.close();
    const executed: string[] = [];
    handlers.add = (_, { messageId }) => executed.push(messageId ?? '');
    handlers.exists = () => executed.push('query');
    const started = performance.now();
    const late = [
      client.call(AddUsers, BODY, { ...OPTIONS, timeoutMs: 200, messageId: 'late' }),
      client.call(Exists, {}, { ...OPTIONS, timeoutMs: 200 }),
    ];
    for (const error of await Promise.all(late.map(failure))) expect(error.status).toBe('DEADLINE_EXCEEDED');
    expect(performance.now() - started).toBeGreaterThanOrEqual(198);

    await startServer();
    await client.call(AddUsers, BODY, { ...OPTIONS, messageId: 'in time' });
    expect(executed).toEqual(['in time']);
    const { values } = await metrics.getSingleMetric('rabbitmq_deliveries_total')!.get();
    expect(values).toContainEqual(
      expect.objectContaining({ value: 1, labels: { pattern: 'users.add.v1', outcome: 'expired', status: '' } }),
    );
  });

  it('lets running handlers finish and their replies arrive when it closes', async () => {
    const { open, opened } = gate();
    const running = gate();
    handlers.add = async () => {
      running.open();
      await opened;
      return { done: true };
    };
    const call = client.call(AddUsers, BODY, OPTIONS);
    await running.opened;
    const closed = server?.close();
    // The only sign of waiting is that close() has not resolved.
    expect(await within(200, closed ?? Promise.resolve())).toBe(false);
    open();
    expect((await call).parse()).toEqual({ done: true });
    await closed;

    handlers.add = (_, { redelivered }) => ({ redelivered });
    await startServer();
    expect((await client.call(AddUsers, BODY, OPTIONS)).parse()).toEqual({ redelivered: false });
  });

  it('lets pending calls finish when the client closes, and refuses new ones', async () => {
    const other = new RabbitClient({ connection: { url: broker.url, name: 'other' }, metrics });
    await other.connect();
    await eventually(() => other.check() === undefined);
    const { open, opened } = gate();
    handlers.add = async () => {
      await opened;
      return { done: true };
    };
    const call = other.call(AddUsers, BODY, OPTIONS);
    const closed = other.close();
    expect((await failure(other.call(AddUsers, BODY, OPTIONS))).status).toBe('UNAVAILABLE');
    open();
    expect((await call).parse()).toEqual({ done: true });
    await closed;
    expect(other.state).toBe('down');
  });

  it('is not slowed down by delayed acknowledgements of TCP', async () => {
    const timeOf = async (length: number): Promise<number> => {
      const text = 'x'.repeat(length);
      handlers.add = () => ({ text });
      const started = performance.now();
      await client.call(AddUsers, { organizationId: 'o', users: [{ userId: 'u', name: text }] }, OPTIONS);
      return performance.now() - started;
    };
    // Alternating, so that a machine that is slow for a while affects both.
    const longer: number[] = [];
    for (let round = 0; round < 15; round++) longer.push((await timeOf(5000)) - (await timeOf(10)));
    // From 4 KB on amqplib writes each frame of a message separately. Without cork and without noDelay they wait 40 ms in each direction.
    expect(longer.sort((a, b) => a - b)[7]).toBeLessThan(40);
  });
});
