import { execFile } from 'node:child_process';
import { devNull } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connect, type ChannelModel, type ConfirmChannel } from 'amqplib';
import type { CloudEvent } from '@app/contracts/event';
import { eventually } from '@app/testing/eventually';
import { Caller } from './harness/caller';
import { Cluster, type Node } from './harness/cluster';
import { Random, seedOfRun } from './harness/random';
import { lasting } from './harness/run-fault';

const ROUNDS = 20;
const IN_A_ROUND = 10;
/** Deliveries of each command before and after the call that deletes its notification. */
const MOST_REPETITIONS = 25;
const ORGANIZATION = 'deletions';
/** From the first of the repeated adds that a process gets: not all are done then. */
const LATEST_KILL_MS = 50;
/** A document with 100,000 recipients. */
const NOTIFICATIONS = 100;
const MOST_RECIPIENTS = 1000;
/** Most of each call that was not disturbed. */
const MOST_MS = 1000;
/** Enough for an event that nothing holds back, and less than the time for which a process remembers another one. */
const HELD_MS = 2000;
const LETTERS = 'notifications.commands.dead';

describe('deletion', () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let cluster: Cluster;
  let connection: ChannelModel;
  let channel: ConfirmChannel;
  let caller: Caller;

  beforeAll(async () => {
    cluster = await Cluster.start(random, { writers: 3 });
    caller = new Caller(cluster);
    connection = await connect(cluster.broker.url);
    channel = await connection.createConfirmChannel();
  });
  afterAll(async () => {
    await connection?.close();
    await cluster?.remove();
  });

  /** Repeats the call until it succeeds. */
  const call = async (operation: 'add' | 'get' | 'delete', data: object) =>
    (await caller.untilDone<{ data: object }>(`notifications/${operation}`, { organizationId: ORGANIZATION, ...data })).data;

  const commandOf = (id: string) => ({
    organizationId: ORGANIZATION,
    documentId: 'document',
    notificationId: id,
    actionUser: { userId: 'actor' },
    displayHeadlineMessageTemplate: `Number ${id}`,
    notifyUsers: [{ userId: 'reader' }],
  });

  /** Events in the order in which they reach a listener, with the ids of their notifications. */
  async function listen(queue: string): Promise<string[]> {
    const events: string[] = [];
    await channel.assertQueue(queue, { arguments: { 'x-queue-type': 'quorum' } });
    for (const key of ['notification.added.v1', 'notification.deleted.v1']) await channel.bindQueue(queue, 'events', key);
    await channel.consume(
      queue,
      (message) => {
        const { type, data } = JSON.parse(message?.content.toString() ?? '') as CloudEvent<{
          notificationId?: string;
          notificationIds?: string[];
        }>;
        for (const id of data.notificationIds ?? [data.notificationId]) events.push(`${type} ${id}`);
      },
      { noAck: true },
    );
    return events;
  }

  /** Additions that a listener hears of after the deletion. */
  const lateIn = (events: readonly string[], ids: readonly string[]) =>
    ids.filter((id) => events.lastIndexOf(`notification.added.v1 ${id}`) > events.indexOf(`notification.deleted.v1 ${id}`));

  /** Runs the tool for dead letters, like an operator. */
  const letters = (...args: string[]) =>
    promisify(execFile)(
      process.execPath,
      [join(process.cwd(), 'dist/libs/rabbitmq-admin/src/dead-letters/dead-letters.main.js'), ...args],
      { env: { PATH: process.env.PATH, ...cluster.environment } },
    );

  const drained = async () => (await cluster.waiting('commands')) + (await cluster.waiting('retry')) === 0;

  async function repeat(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      for (let times = random.between(1, MOST_REPETITIONS); times > 0; times--) {
        channel.publish('commands', 'notifications.add.v1', Buffer.from(JSON.stringify(commandOf(id))), {
          persistent: true,
          messageId: `message ${id}`,
          headers: { 'x-api-key': cluster.tenants[0]['x-svc-api-key'] },
        });
      }
    }
    await channel.waitForConfirms();
  }

  it(`wins over repeated adds, from three writers of which one is killed ${ROUNDS} times`, async () => {
    const events = await listen('listener');
    const all: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const ids = Array.from({ length: IN_A_ROUND }, (_, n) => `${round} ${n}`);
      all.push(...ids);
      await Promise.all(ids.map((id) => call('add', commandOf(id))));
      const atWork = new Set<Node>();
      for (const writer of cluster.writers)
        writer.toBroker.inspector = (bytes, direction) => {
          if (direction === 'toClient' && bytes.includes('notifications.add.v1')) atWork.add(writer);
          return 'pass';
        };
      const repeated = repeat(ids);
      const deleted = call('delete', { notificationIds: ids });
      await eventually(() => atWork.size > 0);
      await lasting(random.between(0, LATEST_KILL_MS));
      const { process } = random.pick([...atWork]);
      await process.stop('SIGKILL');
      for (const { toBroker } of cluster.writers) toBroker.heal();
      await process.start();
      const answers = Object.values(await deleted);
      expect({ seed, answers }).toEqual({ seed, answers: ids.map(() => ({ success: true, message: 'Notification deleted.' })) });
      await repeated;
      await repeat(ids);
      await Promise.all(ids.map((id) => call('add', commandOf(id))));
    }
    await eventually(drained, 60_000);

    const back = (await call('get', { documentId: 'document' })) as { id: string }[];
    // A few are enough to see.
    expect({ seed, back: back.slice(0, 5).map(({ id }) => id) }).toEqual({ seed, back: [] });
    const { rows } = await cluster.sql.query<{ kept: string; readable: string; recipients: string }>(
      `SELECT count(*) AS kept, count(*) FILTER (WHERE document_id <> '') AS readable,
              (SELECT count(*) FROM notifications.recipients) AS recipients
       FROM notifications.notifications`,
    );
    expect({ seed, rows }).toEqual({ seed, rows: [{ kept: String(all.length), readable: '0', recipients: '0' }] });
    // A process remembers an event for 5 s, publishes for up to 4 s, and looks at the table every 10 s.
    const announced = () => new Set(events.filter((event) => event.startsWith('notification.deleted.v1'))).size;
    await eventually(() => announced() === all.length, 40_000);
    const late = lateIn(events, all);
    expect({ seed, late, letters: await cluster.waiting('dead') }).toEqual({ seed, late: [], letters: 0 });
    caller.report(`deletion beside repeated adds, SIGKILL of a writer, ${ROUNDS} times (${all.length} deleted)`);
  }, 600_000);

  it('is announced after its addition, also when a process is held between commit and publish', async () => {
    const events = await listen('held');
    await call('add', commandOf('before'));
    for (const { toDatabase } of cluster.writers)
      // From the statement on no answer of the database arrives on its connection.
      toDatabase!.inspector = (bytes, direction, link) => {
        if (direction === 'toServer' && bytes.includes('insert-')) link.note = 'inserting';
        return direction === 'toClient' && link.note === 'inserting' ? 'hold' : 'pass';
      };
    const added = caller.once('notifications/add', commandOf('held'));
    const isStored = async () =>
      (await cluster.sql.query(`SELECT FROM notifications.notifications WHERE id = 'held'`)).rowCount === 1;
    await eventually(isStored, 2000);
    await call('delete', { notificationIds: ['held'] });
    await lasting(HELD_MS);
    for (const { toDatabase } of cluster.writers) toDatabase!.heal();
    await added;
    await eventually(() => events.includes('notification.deleted.v1 held'), 40_000);
    // The addition is published first where it is not lost in a process that has ended.
    expect({ seed, late: lateIn(events, ['held']), added: events.includes('notification.added.v1 held') }).toEqual({
      seed,
      late: [],
      added: true,
    });
  }, 120_000);

  it('of a document with 100,000 recipients goes on with its page token after kills', async () => {
    const notifyUsers = Array.from({ length: MOST_RECIPIENTS }, (_, number) => ({ userId: `user ${number}` }));
    const add = (id: string) => call('add', { ...commandOf(id), documentId: 'full', notifyUsers });
    const recipients = async () =>
      (
        await cluster.sql.query<{ count: number }>(
          `SELECT count(*)::int FROM notifications.recipients WHERE document_id = 'full' AND notification_id NOT LIKE 'later%'`,
        )
      ).rows[0].count;
    for (let number = 0; number < NOTIFICATIONS; number += IN_A_ROUND)
      await Promise.all(Array.from({ length: IN_A_ROUND }, (_, n) => add(`full ${number + n}`)));
    expect({ seed, recipients: await recipients() }).toEqual({ seed, recipients: NOTIFICATIONS * MOST_RECIPIENTS });

    const deleted: string[] = [];
    const times: number[] = [];
    const left: number[] = [];
    let pageToken: string | undefined;
    do {
      const kill = deleted.length > 0 && random.chance(0.5);
      const from = performance.now();
      const answer = caller.untilDone<{ data: object; pageToken?: string }>('notifications/delete', {
        ...{ organizationId: ORGANIZATION, documentId: 'full', pageToken },
      });
      if (kill) {
        const { process } = random.pick(cluster.writers);
        await lasting(random.between(0, 100));
        await process.stop('SIGKILL');
        await process.start();
      }
      const { data, pageToken: next } = await answer;
      if (!kill) times.push(performance.now() - from);
      deleted.push(...Object.keys(data));
      left.push(await recipients());
      // Notifications that are stored after the first call stay.
      await add(`later ${left.length}`);
      pageToken = next;
    } while (pageToken);
    expect({ seed, left: left.at(-1) }).toEqual({ seed, left: 0 });
    // No call deletes more than 10,000. A call whose answer was lost has done so, too.
    const most = 2 * 10_000;
    expect({ seed, steps: left.map((count, n) => (left[n - 1] ?? NOTIFICATIONS * MOST_RECIPIENTS) - count <= most) }).toEqual({
      seed,
      steps: left.map(() => true),
    });
    expect({ seed, slow: times.filter((ms) => ms > MOST_MS) }).toEqual({ seed, slow: [] });
    const shown = (await call('get', { documentId: 'full' })) as { id: string }[];
    expect({ seed, shown: shown.map(({ id }) => id).sort() }).toEqual({
      seed,
      shown: left.map((_, number) => `later ${number + 1}`).sort(),
    });
    caller.report(`deletion of a document with 100,000 recipients, SIGKILL of writers`);
  }, 300_000);

  it('wins over a command that an operator replays from the dead letters', async () => {
    const ids = ['replayed', 'other'];
    const contentOf = (id: string) => ({ ...commandOf(id), documentId: 'replays' });
    await call('add', contentOf('replayed'));
    await call('delete', { notificationIds: ['replayed'] });
    // As a service publishes what it gives up. The other one was never stored: it shows that letters are replayed.
    for (const id of ids)
      channel.publish('dead', LETTERS, Buffer.from(JSON.stringify(contentOf(id))), {
        persistent: true,
        messageId: `message ${id}`,
        contentType: 'application/json',
        userId: new URL(cluster.broker.url).username,
        headers: {
          'x-api-key': cluster.tenants[0]['x-svc-api-key'],
          'x-routing-key': 'notifications.add.v1',
          'x-attempt': 8,
          'x-first-failed-at': Date.now(),
          'x-dead-status': 'UNAVAILABLE',
          'x-dead-reason': 'The notification could not be stored now.',
        },
      });
    await channel.waitForConfirms();
    await eventually(async () => (await cluster.waiting('dead')) === ids.length);
    await letters('list');
    await letters('replay', '--all', '--audit', devNull);
    const shown = async () => (await call('get', { documentId: 'replays' })) as { id: string }[];
    await eventually(async () => (await drained()) && (await shown()).length > 0, 30_000);
    expect({ seed, shown: (await shown()).map(({ id }) => id) }).toEqual({ seed, shown: ['other'] });
  }, 120_000);
});
