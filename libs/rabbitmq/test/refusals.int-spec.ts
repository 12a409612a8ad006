import { Registry } from 'prom-client';
import { ApiError, type ErrorStatus } from '@app/contracts/error';
import { LIGHT_COMMAND_BYTES } from '@app/amqp/messages/command-format';
import { AddUsers } from '@app/contracts/users.add';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { metricValue } from '@app/testing/metric-value';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { BASIC_ACK, FaultProxy, type Link } from '../../../test/faults/harness/fault-proxy';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import { declareTopology } from '../src/topology/declare-topology';

const STATUSES: ErrorStatus[] = ['UNAVAILABLE', 'NOT_FOUND'];

/** A refusal promises that the command will not be executed, also when its delivery is lost and another one would be executed. */
describe('refusals', () => {
  let broker: TestBroker;
  let proxy: FaultProxy;
  let client: RabbitClient;
  let server: RabbitServer;
  const handlers = { authenticate: () => ({}), exists: () => ({}) } as unknown as UsersHandlers;
  /** The connection of the server's consumers. Replies go over another one. */
  let consuming: Link | undefined;
  const metrics = new Registry();

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    proxy = await FaultProxy.to(broker.url);
    client = new RabbitClient({ connection: { url: broker.url, name: 'gateway' }, metrics: new Registry() });
    await client.connect();
    watch();
    server = await startUsersStub(
      { connection: { url: proxy.through(broker.url), name: 'users' }, metrics, drainTimeoutMs: 200 },
      handlers,
    );
  });
  beforeEach(() => eventually(() => server.check() === undefined && client.check() === undefined));
  afterAll(async () => {
    await client?.close();
    await server?.close();
    await proxy?.close();
    await broker?.drop();
  });

  /** Notes the connection of the consumers. @param isCut whether it ends before these bytes */
  function watch(isCut: (bytes: Buffer) => boolean = () => false): void {
    proxy.inspector = (bytes, direction, link) => {
      if (direction === 'toServer' && bytes.includes('users consuming')) consuming = link;
      return link === consuming && direction === 'toServer' && isCut(bytes) ? 'cut' : 'pass';
    };
  }

  const call = (organizationId: string, { apiKey = 'key', users = 1, timeoutMs = 10_000 } = {}) =>
    client
      .call(
        AddUsers,
        { organizationId, users: Array.from({ length: users }, (_, user) => ({ userId: `u${user}` })) },
        { apiKey, requestId: organizationId, timeoutMs },
      )
      .then(
        (answer) => answer.parse() as unknown,
        (error: unknown) => (error as ApiError).status,
      );

  it.each(STATUSES)('%s: when the ack is lost, the answer is that of the redelivery', async (status) => {
    handlers.add = (_, { redelivered }) => {
      if (redelivered) return { redelivered };
      let cut = false;
      watch((bytes) => !cut && (cut = bytes.includes(BASIC_ACK)));
      throw new ApiError(status, 'Not now.');
    };
    expect(await call('lost ack')).toEqual({ redelivered: true });
  });

  it.each(STATUSES)('%s: when the delivery is lost before, the answer is that of the redelivery', async (status) => {
    const { open: finish, opened: finished } = gate();
    const { open: again, opened: redelivery } = gate();
    handlers.add = async ({ organizationId }, { redelivered }) => {
      if (organizationId === 'later') return {};
      if (redelivered) {
        again();
        await finished;
        return { redelivered };
      }
      consuming?.end('reset');
      await redelivery;
      throw new ApiError(status, 'Not now.');
    };
    const answer = call('lost delivery');
    await redelivery;
    // A reply to the first delivery would come before this one.
    await call('later');
    finish();
    expect(await answer).toEqual({ redelivered: true });
  });

  it.each(STATUSES)('%s: a command that shares its message is not refused before the others are settled', async (status) => {
    handlers.add = ({ organizationId }, { redelivered }) => {
      if (redelivered || organizationId === 'later') return { redelivered };
      if (organizationId === 'refused') throw new ApiError(status, 'Not now.');
      return new Promise(() => undefined);
    };
    const answers = Promise.all([call('refused'), call('slow')]);
    await eventually(() => client.pending === 2);
    await call('later');
    consuming?.end('reset');
    expect(await answers).toEqual([{ redelivered: true }, { redelivered: true }]);
  });

  it.each(STATUSES)('%s: a refusal does not wait for heavy commands of another tenant', async (status) => {
    const { open: finish, opened: finished } = gate();
    handlers.add = async ({ organizationId }) => {
      if (organizationId === 'refused') throw new ApiError(status, 'Not now.');
      await finished;
      return {};
    };
    // In one iteration of the event loop, so that nothing but its weight keeps it out of the message of the other one.
    const answers = [call('heavy', { apiKey: 'other', users: LIGHT_COMMAND_BYTES / 8 }), call('refused')];
    expect(await answers[1]).toBe(status);
    finish();
    expect(await answers[0]).toEqual({});
  });

  it('are counted when their callers do not wait until the broker says that it has the acks', async () => {
    let isHeld = false;
    proxy.inspector = (_, direction, link) => (isHeld && link === consuming && direction === 'toClient' ? 'hold' : 'pass');
    handlers.add = () => {
      isHeld = true;
      throw new ApiError('NOT_FOUND', 'None.');
    };
    try {
      expect(await call('late', { timeoutMs: 500 })).toBe('DEADLINE_EXCEEDED');
      await eventually(async () => (await metricValue(metrics, 'rabbitmq_deliveries_total', { outcome: 'reply_lost' })) === 1);
    } finally {
      isHeld = false;
      proxy.heal();
      watch();
    }
  });

  it('reach their callers when the broker has the acks', async () => {
    handlers.add = ({ organizationId }) => {
      if (organizationId === 'fine') return {};
      throw new ApiError('NOT_FOUND', 'None.');
    };
    const calls = Array.from({ length: 100 }, (_, index) => call(index % 10 ? `${index}` : 'fine'));
    expect(await Promise.all(calls)).toEqual(calls.map((_, index) => (index % 10 ? 'NOT_FOUND' : {})));
  });
});
