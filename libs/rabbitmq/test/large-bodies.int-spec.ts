import type { ConfirmChannel } from 'amqplib';
import { MAX_BODY_BYTES } from '@app/contracts/json';
import { eventually } from '@app/testing/eventually';
import type { UsersHandlers } from '@app/testing/system/users-stub';
import { consumedQueues } from '../src/topology/consumed-queues';
import { commandQueue } from '../src/topology/topology';
import { BODY, StubbedUsers } from './stubbed-users';

const PLACES = 256;
const NAME = commandQueue('users', 1);
const { prefetch, prefetchOfLarge } = consumedQueues('users', ['commands'], PLACES).find(({ name }) => name === NAME)!;
const SMALL = Buffer.from(JSON.stringify(BODY));
const TOO_LARGE = Buffer.alloc(2 * MAX_BODY_BYTES, 'x');

describe('large bodies in a lane', () => {
  let users: StubbedUsers;
  let publisher: ConfirmChannel;
  const handlers = {} as UsersHandlers;

  beforeAll(async () => {
    users = await StubbedUsers.start(handlers, { prefetch: { commands: PLACES, queries: 1 } });
    publisher = await users.newConfirmChannel();
  });
  afterAll(() => users?.close());

  const publish = async (body: Buffer, count: number) => {
    for (let number = 0; number < count; number++)
      publisher.publish('commands.1', 'users.add.v1', body, { persistent: true, headers: { 'x-api-key': 'key' } });
    await publisher.waitForConfirms();
  };
  const valueOf = async (metric: string, labels: Record<string, string> = { queue: NAME }) => {
    const { values } = await users.metrics.getSingleMetric(metric)!.get();
    const matching = values.filter((value) => Object.entries(labels).every(([name, label]) => value.labels[name] === label));
    return matching.reduce((sum, { value }) => sum + value, 0);
  };
  const prefetchNow = () => valueOf('rabbitmq_prefetch');
  const refused = () => valueOf('rabbitmq_deliveries_total', { outcome: 'refused' });

  it('are no subject while bodies are small: as many as ever are at work', async () => {
    let letGo = () => {};
    const over = new Promise<object>((resolve) => (letGo = () => resolve({})));
    handlers.add = () => over;
    try {
      await publish(SMALL, 2 * prefetch);
      // Those that came over the first consumer, too.
      await eventually(async () => (await valueOf('rabbitmq_deliveries_in_flight')) >= prefetch);
      expect(await prefetchNow()).toBe(prefetch);
    } finally {
      handlers.add = () => ({});
      letGo();
    }
    await eventually(async () => (await valueOf('rabbitmq_deliveries_in_flight')) === 0);
  });

  it('are taken slowly and few at a time, while calls are answered, and then as before', async () => {
    // The broker may send all of these at once.
    const first = 4;
    await publish(TOO_LARGE, first);
    await eventually(async () => (await prefetchNow()) === prefetchOfLarge);
    const more = 24;
    await publish(TOO_LARGE, more);
    await users.expectEverythingWorks();
    expect(await refused()).toBeLessThan(first + more / 2);
    expect(users.server.check()).toBeUndefined();
    await eventually(async () => (await refused()) === first + more, 15_000);
    await eventually(async () => (await prefetchNow()) === prefetch);
  });
});
