import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { Registry } from 'prom-client';
import { openConnection } from '@app/amqp/connection/open-connection';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { startUsersStub } from '@app/testing/system/users-stub';
import { declareTopology } from '../src/topology/declare-topology';
import { againQueue, BINDINGS, LANES, refusedQueue, RETRY_DELAYS, retryQueue, SERVICES } from '../src/topology/topology';

const BODY = Buffer.from('{"organizationId":"o","users":[{"userId":"u"}]}');
const [SHORTEST] = RETRY_DELAYS;

/** x-death headers that the broker parses when it dead-letters. Up to RabbitMQ 3.12 the first one stops dead-lettering on the whole node. */
const MADE_UP: Readonly<Record<string, unknown>> = {
  'no tables': ['x'],
  'a table without anything': [{}],
  'a death in a retry queue': SERVICES.map((service) => ({
    queue: retryQueue(service, SHORTEST),
    reason: 'expired',
    exchange: 'retry',
    'routing-keys': [retryQueue(service, SHORTEST)],
    count: 1,
    time: { '!': 'timestamp', value: 1_600_000_000 },
  })),
};

/** Uses its own broker: a failure here would stop the retries of all virtual hosts. */
describe('a forged x-death header', () => {
  let broker: PrivateServer;
  let model: ChannelModel;
  let channel: ConfirmChannel;

  beforeAll(async () => {
    broker = await PrivateServer.start('rabbitmq', '--management');
    await declareTopology(broker.url);
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createConfirmChannel();
  });
  afterAll(async () => {
    await model?.close();
    await broker?.remove();
  });

  /** Checks that messages return from the shortest retry queues: the broker still dead-letters. */
  async function expectRetries(): Promise<void> {
    for (const service of SERVICES) {
      channel.publish('retry', retryQueue(service, SHORTEST), Buffer.from('{}'), { persistent: true, messageId: service });
    }
    await channel.waitForConfirms();
    for (const service of SERVICES) {
      const back = await eventually(() => channel.get(againQueue(service), { noAck: true }));
      expect(back).toMatchObject({ properties: { messageId: service } });
    }
  }

  // All headers in one run, because each retry takes seconds.
  it('stops no retry when it expires in the queues of the lanes', async () => {
    const bindings = BINDINGS.filter(({ exchange }) => LANES.some((lane) => lane === exchange));
    for (const { exchange, routingKey } of bindings) {
      for (const deaths of Object.values(MADE_UP)) {
        const properties = { persistent: true, mandatory: true, expiration: 1, headers: { 'x-death': deaths } };
        for (let copy = 0; copy < 3; copy++) channel.publish(exchange, routingKey, BODY, properties);
      }
    }
    await channel.waitForConfirms();
    for (const { queue } of bindings) {
      await eventually(async () => (await channel.checkQueue(queue)).messageCount === 0);
    }
    await expectRetries();
  });

  it('stops no retry when its command is refused', async () => {
    const add = jest.fn(() => ({}));
    const server = await startUsersStub(
      { connection: { url: broker.url, name: 'users' }, metrics: new Registry() },
      { add, authenticate: () => ({}), exists: () => ({}) },
    );
    try {
      await eventually(() => server.check() === undefined);
      const headers = Object.values(MADE_UP).map((deaths) => ({ 'x-api-key': 'key', 'x-death': deaths }));
      for (const lane of LANES)
        for (const forged of headers) channel.publish(lane, 'users.add.v1', BODY, { persistent: true, headers: forged });
      await channel.waitForConfirms();
      const sent = LANES.length * headers.length;
      await eventually(async () => (await channel.checkQueue(refusedQueue('users'))).messageCount === sent);
      expect(add).not.toHaveBeenCalled();
    } finally {
      await server.close();
    }
    await expectRetries();
  });
});
