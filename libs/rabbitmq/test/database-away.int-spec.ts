import { AddUsers } from '@app/contracts/users.add';
import { Exists } from '@app/contracts/users.exists';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { metricValue } from '@app/testing/metric-value';
import type { UsersHandlers } from '@app/testing/system/users-stub';
import type { DeliveryContext } from '../src/delivery/delivery-context';
import { BODY, CALL, DEAD, REFUSED, StubbedUsers } from './stubbed-users';

class DatabaseAway extends Error {}
/** Commands that may be at work in the service. */
const PLACES = 50;

describe('without the database', () => {
  let users: StubbedUsers;
  let databaseIsBack: () => boolean | Promise<boolean>;
  let probes = 0;
  const handlers = {} as UsersHandlers;

  beforeAll(async () => {
    users = await StubbedUsers.start(handlers, {
      maxAttempts: 2,
      prefetch: { commands: PLACES, queries: PLACES },
      isUnavailable: (error) => error instanceof DatabaseAway,
      probe: async () => {
        probes++;
        if (!(await databaseIsBack())) throw new Error('still away');
      },
    });
  });
  afterAll(() => users?.close());

  beforeEach(async () => {
    handlers.add = handlers.authenticate = handlers.exists = () => ({});
    databaseIsBack = () => true;
    for (const queue of [DEAD, REFUSED]) await users.channel.purgeQueue(queue);
  });

  const inHand = (queue: string) => metricValue(users.metrics, 'rabbitmq_deliveries_in_flight', { queue });
  /** It comes back during a probe: the pause, which may take a second, has no part of a wait between two probes. */
  const restarting = () => {
    const database = { back: false, comeBack: (): void => undefined };
    const isBack = new Promise<boolean>((resolve) => (database.comeBack = () => resolve((database.back = true))));
    databaseIsBack = () => isBack;
    return database;
  };
  /** The shortest time of some refusals, in milliseconds: a busy machine delays some of them. */
  const refusedWithin = async (call: () => Promise<unknown>) => {
    const times: number[] = [];
    for (let time = 0; time < 5; time++) {
      const before = performance.now();
      await expect(call()).rejects.toMatchObject({ status: 'UNAVAILABLE' });
      times.push(performance.now() - before);
    }
    return Math.min(...times);
  };

  /** Again when a busy machine takes longer than a restart may. */
  const unnoticed = (scene: (database: ReturnType<typeof restarting>) => Promise<unknown>) =>
    eventually(async () => {
      const database = restarting();
      try {
        await scene(database);
        return true;
      } finally {
        database.comeBack();
        await eventually(() => users.server.check() === undefined);
      }
    });

  it('a restart goes unnoticed', async () => {
    await unnoticed(async (database) => {
      const runs: string[] = [];
      handlers.add = (_, { messageId, redelivered }) => {
        runs.push(`${messageId} ${redelivered}`);
        if (!database.back) throw new DatabaseAway();
        return { stored: messageId };
      };
      users.publish(BODY, { messageId: 'background' });
      await eventually(() => users.server.check() === 'the database is away');
      const awaited = users.client.call(AddUsers, BODY, { ...CALL, messageId: 'awaited' });
      let isRefused = false;
      awaited.catch(() => (isRefused = true));
      await eventually(async () => isRefused || (await inHand('users.calls')) === 1);
      database.comeBack();
      expect((await awaited).parse()).toEqual({ stored: 'awaited' });
      await eventually(() => runs.length === 3);
      expect(runs.sort()).toEqual(['awaited false', 'background false', 'background false']);
    });
    expect(await users.channel.get(DEAD)).toBe(false);
  });

  it('for longer: a new command with a caller is refused, a started one and one without a caller wait', async () => {
    let back = false;
    databaseIsBack = () => back;
    probes = 0;
    const runs: unknown[] = [];
    const { open: fail, opened: failing } = gate();
    handlers.add = async (_, { messageId }) => {
      if (runs.push(messageId) === PLACES) fail();
      if (back) return { stored: messageId };
      await failing;
      throw new DatabaseAway();
    };
    // All places are taken by commands that wait for the database.
    const begun = Array.from({ length: PLACES }, () => users.client.call(AddUsers, BODY, { ...CALL, messageId: 'begun' }));
    await eventually(() => users.server.check() === 'the database is away');
    users.publish(BODY, { messageId: 'background' });
    // More than the prefetch, because commands in the queue must be answered too.
    const refused = await Promise.allSettled(Array.from({ length: 200 }, () => users.client.call(AddUsers, BODY, CALL)));
    for (const outcome of refused) expect(outcome).toMatchObject({ status: 'rejected', reason: { status: 'UNAVAILABLE' } });
    // At once from now on.
    expect(await refusedWithin(() => users.client.call(AddUsers, BODY, CALL))).toBeLessThan(900);
    expect(probes).toBeGreaterThan(1);
    expect(runs).toEqual(begun.map(() => 'begun'));
    back = true;
    for (const call of begun) expect((await call).parse()).toEqual({ stored: 'begun' });
    await eventually(() => runs.includes('background'));
    handlers.add = () => ({});
    await users.expectEverythingWorks();
  });

  it('a restart goes unnoticed by a query', async () => {
    await unnoticed(async (database) => {
      const runs: DeliveryContext[] = [];
      handlers.exists = (_, context) => {
        runs.push(context);
        if (!database.back) throw new DatabaseAway();
        return { fine: true };
      };
      const answer = users.client.call(Exists, {}, CALL);
      await eventually(() => users.server.check() === 'the database is away');
      database.comeBack();
      expect((await answer).parse()).toEqual({ fine: true });
      // On a busy machine the query may be asked again meanwhile, and that is another delivery.
      await eventually(() => runs.filter((one) => one === runs[0]).length === 2);
    });
  });

  it('for longer: answers queries that nothing was executed, and goes on consuming them', async () => {
    let back = false;
    databaseIsBack = () => back;
    handlers.exists = () => {
      throw new DatabaseAway();
    };
    await expect(users.client.call(Exists, {}, CALL)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    // At once from now on.
    expect(await refusedWithin(() => users.client.call(Exists, {}, CALL))).toBeLessThan(900);
    back = true;
    await eventually(() => users.server.check() === undefined);
    handlers.exists = () => ({ fine: true });
    expect((await users.client.call(Exists, {}, CALL)).parse()).toEqual({ fine: true });
  });

  it('executes nothing whose deadline has passed meanwhile', async () => {
    let back = false;
    databaseIsBack = () => back;
    const runs: unknown[] = [];
    handlers.add = (_, { messageId }) => {
      runs.push(messageId);
      if (!back) throw new DatabaseAway();
      return {};
    };
    await expect(users.client.call(AddUsers, BODY, { ...CALL, timeoutMs: 3000, messageId: 'late' })).rejects.toMatchObject({
      status: 'DEADLINE_EXCEEDED',
    });
    back = true;
    await eventually(() => users.server.check() === undefined);
    await users.client.call(AddUsers, BODY, { ...CALL, messageId: 'after' });
    expect(runs).toEqual(['late', 'after']);
  });
});
