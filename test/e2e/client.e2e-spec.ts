import { connect } from 'amqplib';
import { CollaborationClient, type ApiError, type CloudEvent, type Events, type Handlers } from '@app/client/client';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { keepCalling } from '@app/testing/system/keep-calling';
import { requiredEnv } from '@app/testing/required-env';
import { System } from '@app/testing/system/system';
import { ManagementApi } from '@app/rabbitmq-admin/management-api';
import { readCommandLine } from '@app/rabbitmq-admin/accounts/command-line';
import { run } from '@app/rabbitmq-admin/accounts/run';

const OPERATIONS = 'notifications.add.v1,users.add.v1,notifications.get.v1,access.check.v1,contacts.list.v1';
const PURPOSE = ['--operations', OPERATIONS, '--events', 'user.added.v1'];

type UserAdded = CloudEvent<Events['user.added.v1']>;

describe('the client of other services', () => {
  let broker: TestBroker;
  let system: System;
  let api: ManagementApi;
  let url: string;
  let exchange: string;
  let client: CollaborationClient;
  const account = `billing-${Math.random().toString(36).slice(2, 8)}`;
  const clients: CollaborationClient[] = [];

  const accounts = async (...args: string[]) => (await run(api, broker.url, readCommandLine(args)!)).data;
  const open = (options: Partial<ConstructorParameters<typeof CollaborationClient>[0]> = {}) => {
    const opened = new CollaborationClient({ url, exchange, name: 'billing', apiKey: 'demo-key', timeoutMs: 15_000, ...options });
    clients.push(opened);
    return opened;
  };
  beforeAll(async () => {
    broker = await createTestBroker();
    api = new ManagementApi(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'), broker.url);
    system = await System.start({ amqpUrl: broker.url });
    ({ url, exchange } = (await accounts('create', account, ...PURPOSE)) as { url: string; exchange: string });
    client = open();
  });
  afterAll(async () => {
    await Promise.all(clients.map((one) => one.close(0)));
    await system?.stop();
    await broker.management.delete(`users/${account}`).catch(() => undefined);
    await broker.drop();
  });

  const notification = (differences: object = {}) => ({
    organizationId: 'acme',
    documentId: 'plan',
    actionUser: { userId: 'billing' },
    displayHeadlineMessageTemplate: 'Paid',
    ...differences,
  });
  const failure = (work: Promise<unknown>): Promise<ApiError> =>
    work.then(
      () => Promise.reject(new Error('it worked')),
      (error: unknown) => error as ApiError,
    );
  const kill = () => eventually(async () => (await broker.management.killConnections('billing')) > 0, undefined, 100);

  it('publishes each command once in effect, while its connections are ended', async () => {
    const ids: string[] = [];
    const end = keepCalling(1, 25, async () => {
      const batch = Array.from({ length: 20 }, (_, index) => `n-${ids.length + index}`);
      const published = batch.map((messageId) => client.publish('notifications.add.v1', notification(), { messageId }));
      expect((await Promise.all(published)).map(({ messageId }) => messageId)).toEqual(batch);
      ids.push(...batch);
    });
    try {
      await kill();
      const before = ids.length;
      await eventually(() => ids.length >= before + 100);
    } finally {
      await end();
    }
    const stored: string[] = [];
    await eventually(async () => {
      stored.length = 0;
      for (let pageToken: string | undefined, page = 0; page === 0 || pageToken; page++) {
        const { result } = await client.call('notifications.get.v1', { organizationId: 'acme', documentId: 'plan', pageToken });
        stored.push(...result.data.map(({ id }) => id));
        ({ pageToken } = result);
      }
      return stored.length === ids.length;
    });
    expect(new Set(stored)).toEqual(new Set(ids));
  });

  it('calls commands and queries, and passes on the errors of the services', async () => {
    const added = await client.call('users.add.v1', { organizationId: 'acme', users: [{ userId: 'ada', name: 'Ada' }] });
    expect(added.result.data.ada).toMatchObject({ success: true, message: 'User added.' });
    const asked = { organizationId: 'acme', documentId: 'plan', userId: 'ada' };
    expect((await client.call('access.check.v1', asked)).result).toEqual({ allowed: true, level: 'organization' });
    expect((await client.call('contacts.list.v1', { organizationId: 'acme' })).result.users).toMatchObject([{ userId: 'ada' }]);
    const missing = notification({ notificationId: 'm', organizationId: 'none', createOrganization: false });
    expect(await failure(client.call('notifications.add.v1', missing))).toMatchObject({ name: 'ApiError', status: 'NOT_FOUND' });
    const invalid = await failure(client.call('users.add.v1', { organizationId: 'acme', users: [] }));
    expect(invalid).toMatchObject({ status: 'INVALID_ARGUMENT', details: [{ field: 'users' }] });
    const stranger = await failure(client.call('access.check.v1', asked, { apiKey: 'somebody' }));
    expect(stranger).toMatchObject({ status: 'PERMISSION_DENIED' });
  });

  it('returns the first answer again for an idempotency key', async () => {
    const body = { organizationId: 'acme', users: [{ userId: 'grace' }] };
    for (let time = 0; time < 2; time++) {
      const { result } = await client.call('users.add.v1', body, { idempotencyKey: 'once' });
      expect(result.data.grace.message).toBe('User added.');
    }
  });

  it('returns the id of the notification that is stored, also for an idempotency key that was used before', async () => {
    const add = () => client.call('notifications.add.v1', notification({ documentId: 'once' }), { idempotencyKey: 'one' });
    const [first, again] = [await add(), await add()];
    expect(first.notificationId).toBe(first.messageId);
    expect(again.notificationId).toBe(first.messageId);
    const { result } = await client.call('notifications.get.v1', { organizationId: 'acme', documentId: 'once' });
    expect(result.data.map(({ id }) => id)).toEqual([again.notificationId]);
  });

  it('repeats a call when the connection is lost before the answer', async () => {
    const users = system.services.users;
    users.kill('SIGSTOP');
    const call = client.call('access.check.v1', { organizationId: 'acme', documentId: 'plan', userId: 'ada' });
    await kill();
    users.kill('SIGCONT');
    expect((await call).result.allowed).toBe(true);
  });

  it('reports an unknown outcome when no answer came by the deadline', async () => {
    system.services.users.kill('SIGSTOP');
    const body = { organizationId: 'acme', documentId: 'plan', userId: 'ada' };
    const error = await failure(client.call('access.check.v1', body, { timeoutMs: 300 }));
    system.services.users.kill('SIGCONT');
    expect(error.status).toBe('DEADLINE_EXCEEDED');
  });

  it('names a missing permission at once, and other calls are not affected', async () => {
    const others = Array.from({ length: 5 }, () => client.publish('notifications.add.v1', notification({ documentId: 'other' })));
    const document = { organizationId: 'acme', documentId: 'plan' };
    for (const error of [
      await failure(client.publish('documents.set.v1', document)),
      await failure(client.call('documents.set.v1', document)),
    ]) {
      expect(error).toMatchObject({
        status: 'PERMISSION_DENIED',
        message: 'The broker account may not publish this operation to this exchange.',
      });
    }
    expect(await Promise.all(others)).toHaveLength(5);
  });

  it("says in the broker's words why it cannot be used, without the password", async () => {
    const wrong = new URL(url);
    wrong.password = 'hunter2';
    const error = await failure(open({ url: wrong.href, timeoutMs: 4000 }).publish('notifications.add.v1', notification()));
    expect(error.status).toBe('UNAVAILABLE');
    expect(error.message).toContain('ACCESS_REFUSED');
    expect(error.message).not.toContain('hunter2');
  });

  it.each([
    ['a body that is too large', notification({ displayBodyMessage: 'x'.repeat(1024 * 1024) }), {}],
    ['no tenant', notification(), { apiKey: '' }],
    ['an idempotency key that is none', notification(), { idempotencyKey: 'ü' }],
    ['a deadline too far', notification(), { timeoutMs: 300_001 }],
    ['a message id that is too long', notification(), { messageId: 'x'.repeat(256) }],
  ])('refuses to send %s', async (_, body, options) => {
    expect(await failure(client.publish('notifications.add.v1', body, options))).toMatchObject({ status: 'INVALID_ARGUMENT' });
  });

  describe('listening', () => {
    let counter = 0;
    const listen = async (handler: (event: UserAdded) => unknown, tries?: number) => {
      const listening = open();
      const suffix = `q${counter++}`;
      // Binds only this queue: the queues of earlier tests lose their bindings.
      await accounts('change', account, ...PURPOSE, '--queue', suffix);
      const queue = `${account}.${suffix}`;
      const handlers: Handlers = { 'user.added.v1': handler };
      return { queue, listening, listener: await listening.listen({ queue, handlers, tries }) };
    };
    const add = (userId: string) => system.call('users/add', { organizationId: 'acme', users: [{ userId }] });
    const userOf = ({ data }: UserAdded) => data.users[0].userId;

    it('retries an event whose handler fails, and acknowledges the others', async () => {
      const seen: string[] = [];
      const { queue, listening } = await listen((event) => {
        seen.push(userOf(event));
        if (seen.length < 3) throw new Error('not yet');
      });
      await add('patient');
      await eventually(() => seen.length === 3);
      expect(seen).toEqual(['patient', 'patient', 'patient']);
      await listening.close();
      const admin = await connect(broker.url);
      const channel = await admin.createChannel();
      expect(await channel.checkQueue(queue)).toMatchObject({ messageCount: 0 });
      expect(await channel.checkQueue(`${queue}.dead`)).toMatchObject({ messageCount: 0 });
      await admin.close();
    });

    it('dead-letters an event after the last attempt, with the reason, and continues', async () => {
      const seen: string[] = [];
      const { queue } = await listen((event) => {
        if (userOf(event) === 'poison') throw new Error('cannot be mailed');
        seen.push(userOf(event));
      }, 2);
      await add('poison');
      await add('healthy');
      await eventually(() => seen.includes('healthy'));
      const admin = await connect(broker.url);
      const channel = await admin.createChannel();
      const dead = await eventually(async () => await channel.get(`${queue}.dead`, { noAck: true }));
      await admin.close();
      expect(dead && JSON.parse(dead.content.toString())).toMatchObject({
        type: 'user.added.v1',
        data: { organizationId: 'acme' },
      });
      expect(dead && dead.properties.headers).toMatchObject({ 'x-dead-reason': 'cannot be mailed', 'x-attempt': 2 });
      expect(dead && dead.properties.messageId).toBe(dead && (JSON.parse(dead.content.toString()) as UserAdded).id);
    });

    it('continues after a lost connection, with the events published meanwhile', async () => {
      const seen: string[] = [];
      await listen((event) => seen.push(userOf(event)));
      await kill();
      await add('meanwhile');
      await eventually(() => seen.includes('meanwhile'));
    });

    it('finishes the running handlers when it closes, and leaves the other events', async () => {
      const seen: string[] = [];
      const { open: letGo, opened: held } = gate();
      const { queue, listening } = await listen(async (event) => {
        seen.push(userOf(event));
        await held;
      });
      await add('in hand');
      await eventually(() => seen.length === 1);
      const closed = listening.close();
      await add('later');
      letGo();
      await closed;
      expect(seen).toEqual(['in hand']);
      const admin = await connect(broker.url);
      const channel = await admin.createChannel();
      const left = await eventually(async () => await channel.get(queue, { noAck: true }));
      expect(left && userOf(JSON.parse(left.content.toString()) as UserAdded)).toBe('later');
      expect(await channel.get(queue)).toBe(false);
      await admin.close();
    });

    it('declares its queue itself with an account of an earlier version, which has the permission', async () => {
      const old = `${account}-old`;
      const asOld = new URL(broker.url);
      asOld.username = old;
      asOld.password = 'secret';
      const own = `^${old}\\..*$`;
      await api.put(`users/${old}`, { password: 'secret', tags: '' });
      await api.put(`permissions/${api.vhost}/${old}`, {
        configure: own,
        write: `^(commands|${own.slice(1, -1)})$`,
        read: `^(events|${own.slice(1, -1)})$`,
      });
      const seen: string[] = [];
      for (const type of ['notification.added.v1', 'user.added.v1'] as const) {
        const listening = open({ url: asOld.href, exchange: undefined });
        await listening.listen({ queue: `${old}.mail`, handlers: { [type]: () => void seen.push(type) } });
        await system.call('users/add', { organizationId: 'acme', users: [{ userId: `for the old one, ${type}` }] });
        await system.call('notifications/add', notification());
        await eventually(() => seen.includes(type));
        await listening.close();
      }
      await broker.management.delete(`users/${old}`);
    });

    it('names a missing permission', async () => {
      const handlers: Handlers = { 'user.added.v1': () => undefined };
      const error = await failure(open().listen({ queue: 'users.mine', handlers, timeoutMs: 4000 }));
      expect(error.status).toBe('UNAVAILABLE');
      expect(error.message).toContain('ACCESS_REFUSED');
      await expect(open().listen({ queue: 'no spaces', handlers })).rejects.toThrow(RangeError);
    });
  });

  it('does nothing after it is closed', async () => {
    const closing = open();
    const last = closing.publish('notifications.add.v1', notification({ notificationId: 'last' }));
    await closing.close();
    await last;
    expect(await failure(closing.publish('notifications.add.v1', notification()))).toMatchObject({ status: 'UNAVAILABLE' });
    expect(closing.check()).toBe('closed');
  });
});
