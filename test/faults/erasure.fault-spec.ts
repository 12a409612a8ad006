import { connect, type ChannelModel } from 'amqplib';
import type { CloudEvent } from '@app/contracts/event';
import { EVENT_TYPES } from '@app/contracts/event-types';
import { eventually } from '@app/testing/eventually';
import { rowsWith } from '@app/testing/database/rows-with';
import { Caller } from './harness/caller';
import { Cluster, waitingIn, type Node } from './harness/cluster';
import type { Link } from './harness/fault-proxy';
import { personOf } from './harness/person';
import { Random, seedOfRun } from './harness/random';
import { lasting } from './harness/run-fault';

const KILLS = 20;
const PEOPLE = 8;
const ORGANIZATIONS = ['a', 'b', 'c'];
const NOTIFICATIONS = 150;
/** Less than the 3 s after which a process gives up on a silent database, and than the 5 s for which it remembers events. */
const HELD_MS = 2500;
/** Less than the 4 s after which a process gives up a publication. Two of them are longer than the 5 s after which others take over its events. */
const LONG_PUBLICATION_MS = 3300;

describe('erasure', () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let cluster: Cluster;
  let connection: ChannelModel;
  let caller: Caller;
  const events: CloudEvent<{ userIds?: string[] }>[] = [];

  beforeAll(async () => {
    // The first writer takes no events, so that it can be held without holding up an order.
    cluster = await Cluster.start(random, {
      users: 2,
      writers: 1,
      env: { notifications: { NOTIFICATIONS_QUEUES: 'commands,queries' } },
    });
    caller = new Caller(cluster);
    for (let more = 0; more < 2; more++) await cluster.addWriter(random, { NOTIFICATIONS_QUEUES: 'commands,queries,events' });
    await Promise.all(cluster.writers.slice(1).map(({ process }) => process.start()));
    connection = await connect(cluster.broker.url);
    const channel = await connection.createChannel();
    await channel.assertQueue('listener', { arguments: { 'x-queue-type': 'quorum' } });
    for (const type of Object.values(EVENT_TYPES)) await channel.bindQueue('listener', 'events', type);
    const keep = (content: Buffer) => events.push(JSON.parse(content.toString()) as (typeof events)[number]);
    await channel.consume('listener', (message) => void (message && keep(message.content)), { noAck: true });
  });
  afterAll(async () => {
    await connection?.close();
    await cluster?.remove();
  });

  const notify = (organizationId: string, notificationId: string, person: object, tenant = 0) =>
    caller.untilDone(
      'notifications/add',
      {
        organizationId,
        documentId: 'document',
        notificationId,
        actionUser: person,
        displayHeadlineMessageTemplate: 'Hello',
        displayHeadlineMessageTemplateData: { recipientUser: person },
        notifyUsers: [person, { userId: 'other' }],
      },
      tenant,
    );

  /** The data that both services keep of the people. Each has notifications of its own. */
  async function store(tenant: number): Promise<void> {
    const people = Array.from({ length: PEOPLE }, (_, number) => personOf(number));
    for (const organizationId of ORGANIZATIONS) {
      for (const level of [{}, { folderId: 'folder' }, { documentId: 'document' }])
        await caller.untilDone('users/add', { organizationId, ...level, users: people }, tenant);
      await caller.untilDone(
        'users/delete',
        { organizationId, folderId: 'folder', userIds: people.map(({ userId }) => userId) },
        tenant,
      );
      await Promise.all(
        Array.from({ length: NOTIFICATIONS }, (_, n) => notify(organizationId, `n${n}`, people[n % PEOPLE], tenant)),
      );
      await caller.untilDone(
        'notifications/update',
        { organizationId, notifications: [{ id: 'n0', readByUserIds: people.map(({ userId }) => userId) }] },
        tenant,
      );
      for (const { userId } of people)
        await caller.untilDone('notifications/update', { organizationId, userId, readUpTo: 1 }, tenant);
    }
    const queues = async () => (await waitingIn(cluster.broker.url, /./)).filter(({ count }) => count > 0);
    await eventually(async () => (await queues()).length === 0 && (await rows()).every((row) => !/outbox/.test(row)), 30_000);
  }
  const rows = async () => (await rowsWith(cluster.database.url, 'canary')).sort();
  const ended = () =>
    new Set(events.filter(({ type }) => type === EVENT_TYPES.userDataDeleted).flatMap(({ data }) => data.userIds ?? []));

  it(`leaves no trace of people in any table, queue or log, and those of another tenant, when users and notifications are killed ${KILLS} times`, async () => {
    await store(1);
    const others = await rows();
    await store(0);
    expect((await rows()).length).toBe(2 * others.length);

    for (let kill = 0; kill < KILLS; kill++) {
      const called = kill < PEOPLE ? caller.untilDone('users/data/delete', { userIds: [personOf(kill).userId] }) : undefined;
      const { process } = random.pick(kill < PEOPLE ? cluster.usersReplicas : [...cluster.usersReplicas, ...cluster.writers]);
      await lasting(random.between(5, 80));
      await process.stop('SIGKILL');
      await process.start();
      await called;
    }
    await eventually(() => ended().size === PEOPLE, 60_000).catch(() => undefined);
    expect({ seed, ended: ended().size }).toEqual({ seed, ended: PEOPLE });

    // The events of the end themselves are in the outbox until they are published.
    await eventually(async () => (await rows()).every((row) => !/outbox/.test(row)), 30_000);
    const kept = await rows();
    // A few are enough to see: in thousands nobody finds the seed.
    const [left, lost] = [kept.filter((row) => !others.includes(row)), others.filter((row) => !kept.includes(row))];
    expect({ seed, left: left.slice(0, 5), lost: lost.slice(0, 5) }).toEqual({ seed, left: [], lost: [] });
    const last = events.findLastIndex(
      ({ type, apikey, data }) =>
        type === EVENT_TYPES.userDataDeleted && apikey === cluster.tenants[0]['x-svc-api-key'] && data.userIds,
    );
    const late = events.slice(last + 1).filter((event) => JSON.stringify(event).includes('@example.com'));
    const logged = cluster.nodes.flatMap(({ process }) => process.output).filter((line) => /canary/i.test(line));
    const queued = (await waitingIn(cluster.broker.url, /./)).filter(({ count }) => count > 0);
    expect({ seed, late, logged, queued }).toEqual({ seed, late: [], logged: [], queued: [] });
    caller.report(
      `erasure: ${PEOPLE} people in ${ORGANIZATIONS.length} organizations, SIGKILL of users and notifications, ${KILLS} times`,
    );
  }, 600_000);

  /** Starts a writer that takes no adds. */
  const startEraser = async () => {
    await cluster.addWriter(random, { NOTIFICATIONS_QUEUES: 'events' });
    await cluster.writers.at(-1)!.process.start();
  };
  /** @returns the only writer that takes adds. An eraser runs beside it: the time to start one may be longer than a hold */
  const leaveOneWriter = async (): Promise<Node> => {
    const [holder, ...others] = cluster.writers;
    await startEraser();
    await Promise.all(others.map(({ process }) => process.stop()));
    return holder;
  };
  /** @returns the events that have `word`, and `end` for the end of the erasure of the user */
  const eventsWith = (word: string, userId: string) =>
    events
      .map(({ type, data }) =>
        type === EVENT_TYPES.userDataDeleted
          ? data.userIds?.includes(userId) && 'end'
          : JSON.stringify(data).includes(word) && type,
      )
      .filter(Boolean);
  const kept = async (person: string) => (await rows()).filter((row) => row.includes(person) && !/outbox/.test(row));

  it.each(['users', 'notifications'])(
    'goes on in processes of %s that start after the end of all that knew of it',
    async (service) => {
      const nodes = service === 'users' ? cluster.usersReplicas : cluster.writers;
      const table = `${service}.erasures`;
      const person = personOf(97);
      await caller.untilDone('users/add', { organizationId: 'a', documentId: service, users: [person] });
      await notify('a', `to-97-${service}`, person);
      const from = events.length;
      await cluster.sql.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no step'; END $$`);
      await cluster.sql.query(`CREATE TRIGGER no_step BEFORE UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION refuse()`);
      await caller.untilDone('users/data/delete', { userIds: [person.userId] });
      const isBegun = async () =>
        (await cluster.sql.query(`SELECT FROM ${table} WHERE $1 = ANY (user_ids)`, [person.userId])).rowCount === 1;
      await eventually(isBegun, 20_000);
      await Promise.all(nodes.map(({ process }) => process.stop('SIGKILL')));
      await cluster.sql.query('DROP FUNCTION refuse CASCADE');
      await Promise.all(nodes.map(({ process }) => process.start()));
      const ends = () =>
        events
          .slice(from)
          .some(({ type, data }) => type === EVENT_TYPES.userDataDeleted && data.userIds?.includes(person.userId));
      await eventually(ends, 60_000).catch(() => undefined);
      expect({ seed, ends: ends(), kept: await kept(person.userId) }).toEqual({ seed, ends: true, kept: [] });
    },
    120_000,
  );

  it('is said to be complete after every event of its people, also of a process that is held between commit and publish', async () => {
    const holder = await leaveOneWriter();
    const person = personOf(99);
    await notify('a', 'before', person);
    // From the statement on no answer of the database arrives on its connection.
    holder.toDatabase!.inspector = (bytes, direction, link: Link) => {
      if (direction === 'toServer' && bytes.includes('insert-')) link.note = 'inserting';
      return direction === 'toClient' && link.note === 'inserting' ? 'hold' : 'pass';
    };
    const added = notify('a', 'held', person);
    const isStored = async () =>
      (await cluster.sql.query(`SELECT FROM notifications.notifications WHERE id = 'held'`)).rowCount === 1;
    await eventually(isStored, 2000);
    const until = performance.now() + HELD_MS;
    await caller.untilDone('users/data/delete', { userIds: [person.userId] });
    await lasting(Math.max(0, until - performance.now()));
    holder.toDatabase!.heal();
    await added;
    await eventually(() => ended().has(person.userId), 60_000);

    const order = [EVENT_TYPES.notificationAdded, EVENT_TYPES.notificationAdded, 'end'];
    expect({ seed, order: eventsWith(person.email, person.userId), kept: await kept(person.userId) }).toEqual({
      seed,
      order,
      kept: [],
    });
  });

  it('is said to be complete after an event that a process is still publishing when another process has published and deleted it', async () => {
    const holder = await leaveOneWriter();
    let heldAt = 0;
    const hold = (id: string) => {
      heldAt = 0;
      holder.toBroker.inspector = (bytes, direction) => {
        // The reply to the caller has the id too.
        if (direction !== 'toServer' || !bytes.includes('"specversion"') || !bytes.includes(id)) return 'pass';
        heldAt = performance.now();
        return 'hold';
      };
    };
    const heldFor = async (ms: number) => {
      await eventually(() => heldAt > 0, 5000);
      await lasting(Math.max(0, heldAt + ms - performance.now()));
      holder.toBroker.heal();
    };
    // The second event twice: the copy of the other process is made of the notification, which may be without the person by then.
    const expected = [...Array<string>(3).fill(EVENT_TYPES.notificationAdded), 'end'];
    const eraseDuring = async (number: number) => {
      const person = personOf(number);
      const [first, second] = [`first-of-${number}`, `second-of-${number}`];
      // The second event waits in memory behind the first one, and its publication begins shortly before another process may take it.
      hold(first);
      await notify('a', first, person);
      await notify('a', second, person);
      const [others, erased] = [startEraser(), caller.untilDone('users/data/delete', { userIds: [person.userId] })];
      await heldFor(LONG_PUBLICATION_MS);
      hold(second);
      await heldFor(LONG_PUBLICATION_MS);
      await Promise.all([others, erased]);
      await eventually(() => ended().has(person.userId), 60_000);
      // Events that the process was publishing may arrive after the end, if nothing waits for them.
      const order = () => eventsWith(`-of-${number}"`, person.userId);
      await eventually(() => order().length === expected.length, 5000).catch(() => undefined);
      return order();
    };
    const orders: unknown[][] = [];
    // On a busy machine the other process may start too late to take the event.
    for (let number = 90; number < 93 && orders.at(-1)?.length !== expected.length; number++)
      orders.push(await eraseDuring(number));
    expect({ seed, ends: orders.map((order) => order.at(-1)) }).toEqual({ seed, ends: orders.map(() => 'end') });
    expect({ seed, order: orders.at(-1), kept: await kept('canary-9') }).toEqual({ seed, order: expected, kept: [] });
  });
});
