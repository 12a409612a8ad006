import { ApiError } from '@app/contracts/error';
import { eventually } from '@app/testing/eventually';
import { metricValue } from '@app/testing/metric-value';
import type { UsersHandlers } from '@app/testing/system/users-stub';
import { BODY, REFUSED, StubbedUsers } from './stubbed-users';

const LANE = 'users.commands.0';

/** While the queue for refused letters takes none. */
describe('held deliveries', () => {
  let users: StubbedUsers;
  const done: string[] = [];
  const handlers: UsersHandlers = {
    add: ({ organizationId }) => {
      if (organizationId === 'refused') throw new ApiError('NOT_FOUND', 'Never.');
      done.push(organizationId);
      return {};
    },
    authenticate: () => ({}),
    exists: () => ({}),
  };

  beforeAll(async () => {
    users = await StubbedUsers.start(handlers);
    await users.channel.unbindQueue(REFUSED, 'dead', REFUSED);
  });
  afterAll(() => users?.close());

  const publish = (organizationId: string, lane = 'commands') =>
    users.channel.publish(lane, 'users.add.v1', Buffer.from(JSON.stringify({ ...BODY, organizationId })), {
      persistent: true,
      headers: { 'x-api-key': 'key' },
    });
  /** By the management API: a passive declaration also counts a cancelled consumer whose deliveries are not settled. */
  const consumers = async () => {
    const vhost = new URL(users.broker.url).pathname.slice(1);
    const all = await users.broker.management.get<{ queue: { name: string } }[]>(`consumers/${vhost}`);
    return all.filter(({ queue }) => queue.name === LANE).length;
  };

  it('end the consumption of their queue when there are too many, and of no other queue, until their letters are taken', async () => {
    const most = await metricValue(users.metrics, 'rabbitmq_letters_held_limit');
    for (let number = 1; number < most; number++) publish('refused');
    await eventually(async () => (await metricValue(users.metrics, 'rabbitmq_letters_held', { queue: LANE })) === most - 1);
    publish('while there are few');
    await eventually(() => done.includes('while there are few'));
    // The management API is seconds behind.
    await eventually(async () => (await consumers()) === 1);
    expect(users.server.check()).toBeUndefined();

    publish('refused');
    await eventually(async () => (await consumers()) === 0);
    expect(users.server.check()).toContain(`${LANE} is not consumed`);
    publish('behind them');
    publish('in another lane', 'commands.1');
    await eventually(() => done.includes('in another lane'));
    await users.expectEverythingWorks();
    expect(done).not.toContain('behind them');

    await users.channel.bindQueue(REFUSED, 'dead', REFUSED);
    await eventually(() => done.includes('behind them'));
    expect(users.server.check()).toBeUndefined();
    await eventually(async () => (await users.channel.checkQueue(REFUSED)).messageCount === most);
  });
});
