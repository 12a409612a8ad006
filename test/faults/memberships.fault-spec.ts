import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { eventually } from '@app/testing/eventually';
import { copiedMemberships, sourceMemberships } from '@app/testing/database/memberships';
import { Caller } from './harness/caller';
import { Cluster, waitingIn } from './harness/cluster';
import { Random, seedOfRun } from './harness/random';

const LOOPS = 4;
const KILLS = 20;
const ORGANIZATION = 'race';
const LEVELS = [{}, { folderId: 'f' }, { documentId: 'd' }] as const;
/** Users whom all loops add and remove. */
const SHARED = ['a', 'b', 'c', 'd', 'e', 'f'];

/** users/add and users/delete for the same users at the same time, while their processes are killed. */
describe('memberships', () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let cluster: Cluster;
  let caller: Caller;

  beforeAll(async () => {
    cluster = await Cluster.start(random, { users: 2, writers: 2 });
    caller = new Caller(cluster);
  });
  afterAll(() => cluster?.remove(), 60_000);

  /** Runs a tool of operators. */
  const operate = (...tool: string[]) =>
    promisify(execFile)(process.execPath, ['scripts/tool.mjs', ...tool], {
      env: { PATH: process.env.PATH, ...cluster.environment },
    });

  /** Compares the copy when all events have been handled. */
  async function expectCopy(name: string, source: readonly string[]): Promise<void> {
    const waiting = async () =>
      (await cluster.sql.query('SELECT FROM users.outbox')).rowCount! +
      (await waitingIn(cluster.broker.url, /^notifications\.events$/)).reduce((sum, { count }) => sum + count, 0);
    await eventually(async () => (await waiting()) === 0, 30_000);
    const isSame = async () => (await copiedMemberships(cluster.sql)).join() === source.join();
    await eventually(isSame, 30_000).catch(() => undefined);
    expect({ seed, name, copy: await copiedMemberships(cluster.sql) }).toEqual({ seed, name, copy: source });
  }

  it(`end and begin as answered, and their copy is right, when users and notifications are killed ${KILLS} times`, async () => {
    let ended = false;
    const call = (operation: string, data: object) => caller.untilDone(operation, { organizationId: ORGANIZATION, ...data });

    /** Adds and removes shared users, and its own, of whom it knows the memberships. @returns these */
    const loop = async (number: number): Promise<string[]> => {
      const choices = Random.for(seed, `loop ${number}`);
      const own = ['x', 'y', 'z'].map((user) => `${user}${number}`);
      const live = new Set<string>();
      while (!ended) {
        const chosen = [...SHARED, ...own].filter(() => choices.chance(0.4));
        const level = choices.pick(LEVELS);
        const [[name, id] = ['organizationId', '']] = Object.entries(level);
        const path = `${name.replace('Id', '')}/${id}`;
        if (chosen.length === 0) continue;
        if (choices.chance(0.5)) {
          await call('users/add', { ...level, users: chosen.map((userId) => ({ userId })) });
          for (const userId of chosen) live.add(`${path}/${userId}`);
        } else {
          await call('users/delete', { ...level, userIds: chosen });
          for (const one of live)
            if ((id === '' || one.startsWith(`${path}/`)) && chosen.includes(one.slice(one.lastIndexOf('/') + 1)))
              live.delete(one);
        }
        // A read asks the users service about a user, beside the events.
        if (choices.chance(0.2))
          await caller.once('notifications/get', { organizationId: ORGANIZATION, userId: choices.pick(SHARED) });
      }
      return [...live].filter((one) => /[xyz]\d$/.test(one));
    };

    // Without a notification to all, no read asks.
    const notification = {
      documentId: 'd',
      notifyAll: true,
      actionUser: { userId: 'a' },
      displayHeadlineMessageTemplate: 'Hello',
    };
    await call('notifications/add', notification);
    const loops = Promise.all(Array.from({ length: LOOPS }, (_, number) => loop(number)));
    for (let kill = 0; kill < KILLS; kill++) {
      const { process } = random.pick([...cluster.usersReplicas, ...cluster.writers]);
      const killedAfter = caller.statuses.length + random.between(20, 60);
      await eventually(() => caller.statuses.length >= killedAfter, 30_000);
      await process.stop('SIGKILL');
      await process.start();
    }
    ended = true;
    const own = (await loops).flat().sort();

    const source = await sourceMemberships(cluster.sql);
    const [tenant] = source.map((one) => one.split('/')[0]);
    expect({ seed, own: source.filter((one) => /[xyz]\d$/.test(one)) }).toEqual({
      seed,
      own: own.map((one) => `${tenant}/${ORGANIZATION}/${one}`).sort(),
    });
    await expectCopy('events', source);
    // Both only repeat what is there, so neither may change anything. A copy that starts anew asks for each user.
    await operate('events', 'republish');
    await expectCopy('republished', source);
    await operate('copy', 'rebuild');
    const users = new Set(source.map((one) => one.slice(one.lastIndexOf('/') + 1)));
    for (const userId of users) await caller.untilDone('notifications/get', { organizationId: ORGANIZATION, userId });
    await expectCopy('rebuilt', source);
    expect(caller.statuses.length).toBeGreaterThan(1000);
    caller.report(`memberships: users added and removed by ${LOOPS} loops, SIGKILL of users and notifications, ${KILLS} times`);
  }, 600_000);
});
