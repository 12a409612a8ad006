import { Logger } from '@nestjs/common';
import { ApiError } from '@app/contracts/error';
import { AddNotification } from '@app/contracts/notifications.add';
import { AddUsers, type AddUsersRequest } from '@app/contracts/users.add';
import { Authenticate } from '@app/contracts/users.authenticate';
import { Exists } from '@app/contracts/users.exists';
import { Caller } from '@app/amqp/calls/caller';
import { Reply } from '@app/amqp/messages/reply';
import { fillQueue, type TestBroker } from '@app/testing/broker/broker';
import { gate } from '@app/testing/gate';
import type { UsersHandlers } from '@app/testing/system/users-stub';
import type { RabbitClient } from '../src/client/rabbit.client';
import type { DeliveryContext } from '../src/delivery/delivery-context';
import { CallsBench } from './calls-bench';
import { BODY, CALL, failure } from './stubbed-users';

describe('calls', () => {
  let bench: CallsBench;
  let broker: TestBroker;
  let client: RabbitClient;
  let handlers: UsersHandlers;

  beforeAll(async () => {
    bench = await CallsBench.start();
    ({ broker, client, handlers } = bench);
  });
  afterAll(() => bench?.stop());
  beforeEach(() => bench.reset());

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
    const calls = Array.from({ length: 20 }, (_, n) => client.call(AddUsers, { ...BODY, users: [{ userId: String(n) }] }, CALL));
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
    const answer = await client.call(AddUsers, BODY, { ...CALL, messageId: 'm-1', idempotencyKey: 'i-1' });

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
    expect(seen?.deadline).toBeGreaterThanOrEqual(before + CALL.timeoutMs);
    expect(seen?.deadline).toBeLessThanOrEqual(Date.now() + CALL.timeoutMs);
    expect(client.pending).toBe(0);
  });

  it('sends a query that needs no tenant', async () => {
    handlers.authenticate = () => ({ verdict: 'accepted' });
    const request = { apiKey: 'key', tokenHash: 'a'.repeat(64) };
    const answer = await client.call(Authenticate, request, { requestId: 'r', timeoutMs: 5000 });
    expect(answer.parse()).toEqual({ verdict: 'accepted' });
  });

  it('refuses a call without the tenant it needs', async () => {
    const error = await failure(client.call(Exists, {}, { requestId: 'r', timeoutMs: 5000 }));
    expect(error).toMatchObject({ status: 'INVALID_ARGUMENT', message: 'The header x-api-key is required.' });
  });

  it('answers with the error that the handler threw', async () => {
    handlers.add = () => {
      throw new ApiError('NOT_FOUND', 'No such organization.', [{ field: 'organizationId', message: 'is unknown' }]);
    };
    const error = await failure(client.call(AddUsers, BODY, CALL));
    expect(error).toBeInstanceOf(ApiError);
    expect(error.toBody()).toEqual({
      status: 'NOT_FOUND',
      message: 'No such organization.',
      details: [{ field: 'organizationId', message: 'is unknown' }],
    });
  });

  it('validates the body at the consumer', async () => {
    const error = await failure(client.call(AddUsers, { organizationId: 'o' } as AddUsersRequest, CALL));
    expect(error).toMatchObject({ status: 'INVALID_ARGUMENT', message: 'users is required and must be an array' });
  });

  it('answers a bug with a fixed text', async () => {
    handlers.add = async () => {
      throw new Error('secret of ours');
    };
    expect((await failure(client.call(AddUsers, BODY, CALL))).toBody()).toEqual({
      status: 'INTERNAL',
      message: 'Internal error.',
    });
    handlers.add = () => 10n;
    expect((await failure(client.call(AddUsers, BODY, CALL))).toBody()).toEqual({
      status: 'INTERNAL',
      message: 'Internal error.',
    });
  });

  it('says at once that nothing was executed when no queue is bound', async () => {
    const started = performance.now();
    const error = await failure(client.call({ ...AddUsers, pattern: 'users.add.v99' }, BODY, CALL));
    expect(error.status).toBe('UNAVAILABLE');
    expect((error.cause as Error).message).toBe('no queue is bound for it');
    // Not at the deadline.
    expect(performance.now() - started).toBeLessThan(CALL.timeoutMs / 2);
  });

  it('says at once that nothing was executed when the queue is full', async () => {
    await fillQueue(broker, 'notifications.calls');
    const error = await failure(
      client.call(
        AddNotification,
        { organizationId: 'o', documentId: 'd', actionUser: { userId: 'u' }, displayHeadlineMessageTemplate: 't' },
        CALL,
      ),
    );
    expect(error).toMatchObject({ status: 'UNAVAILABLE', cause: { message: 'its queue is full' } });
  });

  it('binds its reply queue again when nothing answers, and says so once until something has answered', async () => {
    const lines: { msg: string }[] = [];
    const warned = jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: { msg: string }) => void lines.push(line));
    const said = () => lines.filter(({ msg }) => msg.includes('the reply queue is bound again')).length;
    const { open, opened } = gate();
    const unanswered = async () => {
      handlers.add = () => opened;
      expect((await failure(client.call(AddUsers, BODY, { ...CALL, timeoutMs: 200 }))).status).toBe('DEADLINE_EXCEEDED');
    };
    await unanswered();
    await unanswered();
    expect(said()).toBe(1);
    handlers.add = () => ({});
    await client.call(AddUsers, BODY, CALL);
    await unanswered();
    expect(said()).toBe(2);
    open();
    warned.mockRestore();
  });

  it('refuses calls above the limit of pending calls', async () => {
    const { open, opened } = gate();
    handlers.add = () => opened;
    const calls = Array.from({ length: 100 }, () => client.call(AddUsers, BODY, CALL));
    expect((await failure(client.call(AddUsers, BODY, CALL))).status).toBe('UNAVAILABLE');
    open();
    await Promise.all(calls);
  });

  it('is not slowed down by delayed acknowledgements of TCP', async () => {
    const timeOf = async (length: number): Promise<number> => {
      const text = 'x'.repeat(length);
      handlers.add = () => ({ text });
      const started = performance.now();
      await client.call(AddUsers, { organizationId: 'o', users: [{ userId: 'u', name: text }] }, CALL);
      return performance.now() - started;
    };
    // Alternating, so that a machine that is slow for a while affects both.
    const longer: number[] = [];
    for (let round = 0; round < 15; round++) longer.push((await timeOf(5000)) - (await timeOf(10)));
    // From 4 KB on amqplib writes each frame of a message separately. Without cork and without noDelay they wait 40 ms in each direction.
    expect(longer.sort((a, b) => a - b)[7]).toBeLessThan(40);
  });
});
