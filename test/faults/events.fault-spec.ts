import { connect, type ChannelModel } from 'amqplib';
import type { CloudEvent } from '@app/contracts/event';
import { eventually } from '@app/testing/eventually';
import { report } from '@app/testing/report';
import { Caller } from './harness/caller';
import { Cluster } from './harness/cluster';
import { Random, seedOfRun } from './harness/random';
import { lasting } from './harness/run-fault';
import { verify } from './harness/verify';
import { Workload } from './harness/workload';

interface User {
  userId: string;
  name?: string;
  version: number;
}

const KILLS = 20;
/** About as long as two calls that change the same users. */
const LATEST_KILL_MS = 30;

describe('events', () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let cluster: Cluster;
  let connection: ChannelModel;

  beforeAll(async () => {
    cluster = await Cluster.start(random, { writers: 2 });
    connection = await connect(cluster.broker.url);
  });
  afterAll(async () => {
    await connection?.close();
    await cluster?.remove();
  });

  it(`are complete when their publishers are killed ${KILLS} times; the newest version matches the source`, async () => {
    const channel = await connection.createChannel();
    await channel.assertQueue('listener', { arguments: { 'x-queue-type': 'quorum' } });
    for (const key of ['user.added.v1', 'notification.added.v1']) await channel.bindQueue('listener', 'events', key);
    const received = new Map<string, number>();
    const users = new Map<string, User>();
    await channel.consume(
      'listener',
      (message) => {
        const event = JSON.parse(message?.content.toString() ?? '') as CloudEvent<{ notificationId?: string; users?: User[] }>;
        received.set(event.id, (received.get(event.id) ?? 0) + 1);
        if (event.data.notificationId) received.set(`${event.apikey} ${event.data.notificationId}`, 1);
        for (const user of event.data.users ?? []) {
          const key = `${event.apikey} ${user.userId}`;
          if (user.version > (users.get(key)?.version ?? 0)) users.set(key, user);
        }
      },
      { noAck: true },
    );

    const workload = new Workload(cluster, random, 'events');
    workload.start();
    // A few users are changed repeatedly, so that versions could be mixed up.
    const caller = new Caller(cluster);
    const renamed = (round: number) => {
      const users = Array.from({ length: 5 }, (_, n) => ({ userId: `often ${n}`, name: `${round} ${random.word()}` }));
      return caller.untilDone('users/add', { organizationId: 'often', users });
    };
    for (let kill = 0; kill < KILLS; kill++) {
      const { process } = random.pick([...cluster.writers, cluster.users]);
      await workload.answers(random.between(5, 30));
      const changes = Promise.all([renamed(2 * kill), renamed(2 * kill + 1)]);
      await lasting(random.between(0, LATEST_KILL_MS));
      await process.stop('SIGKILL');
      await process.start();
      await changes;
    }
    await workload.stop();

    const stored = await cluster.sql.query<{ key: string }>(
      `SELECT o.api_key || ' ' || n.id AS key FROM notifications.notifications n JOIN notifications.organizations o ON o.id = n.organization
       WHERE n.document_id <> ''`,
    );
    const people = await cluster.sql.query<{ key: string; name: string | null }>(
      `SELECT o.api_key || ' ' || u.user_id AS key, u.name FROM users.users u JOIN users.organizations o ON o.id = u.organization`,
    );
    const missing = () => [
      ...stored.rows.filter(({ key }) => !received.has(key)).map(({ key }) => key),
      ...people.rows.filter(({ key, name }) => (users.get(key)?.name ?? null) !== name).map(({ key }) => key),
    ];
    await eventually(() => missing().length === 0, 30_000).catch(() => undefined);
    expect({ seed, stored: stored.rows.length > 100, missing: missing() }).toEqual({ seed, stored: true, missing: [] });
    // An event is published before its relay commits the deletion.
    const left = async () =>
      (await cluster.sql.query('SELECT FROM notifications.outbox UNION ALL SELECT FROM users.outbox')).rowCount;
    await eventually(async () => (await left()) === 0, 30_000).catch(() => undefined);
    expect(await left()).toBe(0);
    const { lost, duplicated, unasked, late, malformed } = await verify(cluster, workload);
    expect({ seed, lost, duplicated, unasked, late, malformed }).toEqual({
      seed,
      lost: [],
      duplicated: [],
      unasked: [],
      late: [],
      malformed: [],
    });
    const statuses = [...workload.statuses.map(({ status }) => status), ...caller.statuses];
    const count = (status: number) => statuses.filter((one) => one === status).length;
    const repeated = [...received.values()].filter((times) => times > 1).length;
    report({
      fault: `events: SIGKILL of their publishers, ${KILLS} times (${repeated} published twice)`,
      asked: statuses.length,
      200: count(200),
      503: count(503),
      504: count(504),
      'no answer': count(0),
      lost: lost.length,
      duplicated: duplicated.length,
      unasked: unasked.length,
      late: late.length,
    });
    workload.journal.remove();
  }, 600_000);
});
