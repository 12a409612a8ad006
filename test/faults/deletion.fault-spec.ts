import { connect, type ChannelModel, type ConfirmChannel } from 'amqplib';
import type { CloudEvent } from '@app/contracts/event';
import { eventually } from '@app/testing/eventually';
import { Caller } from './harness/caller';
import { Cluster } from './harness/cluster';
import { Random, seedOfRun } from './harness/random';

const ROUNDS = 20;
const IN_A_ROUND = 10;
/** Deliveries of each command before and after the call that deletes its notification. */
const MOST_REPETITIONS = 25;
const ORGANIZATION = 'deletions';

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
    const events: string[] = [];
    await channel.assertQueue('listener', { arguments: { 'x-queue-type': 'quorum' } });
    for (const key of ['notification.added.v1', 'notification.deleted.v1']) await channel.bindQueue('listener', 'events', key);
    await channel.consume(
      'listener',
      (message) => {
        const { type, data } = JSON.parse(message?.content.toString() ?? '') as CloudEvent<{
          notificationId?: string;
          notificationIds?: string[];
        }>;
        for (const id of data.notificationIds ?? [data.notificationId]) events.push(`${type} ${id}`);
      },
      { noAck: true },
    );

    const all: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const ids = Array.from({ length: IN_A_ROUND }, (_, n) => `${round} ${n}`);
      all.push(...ids);
      await Promise.all(ids.map((id) => call('add', commandOf(id))));
      const { process } = random.pick(cluster.writers);
      const repeated = repeat(ids);
      const deleted = call('delete', { notificationIds: ids });
      await process.stop('SIGKILL');
      await process.start();
      expect(Object.values(await deleted)).toEqual(ids.map(() => ({ success: true, message: 'Notification deleted.' })));
      await repeated;
      await repeat(ids);
    }
    const drained = async () => (await cluster.waiting('commands')) + (await cluster.waiting('retry')) === 0;
    await eventually(drained, 60_000);

    expect(await call('get', { documentId: 'document' })).toEqual([]);
    const { rows } = await cluster.sql.query<{ kept: string; readable: string; recipients: string }>(
      `SELECT count(*) AS kept, count(*) FILTER (WHERE document_id <> '') AS readable,
              (SELECT count(*) FROM notifications.recipients) AS recipients
       FROM notifications.notifications`,
    );
    expect({ seed, rows }).toEqual({ seed, rows: [{ kept: String(all.length), readable: '0', recipients: '0' }] });
    // A process remembers an event for 5 s, publishes for up to 4 s, and looks at the table every 10 s.
    const announced = () => new Set(events.filter((event) => event.startsWith('notification.deleted.v1'))).size;
    await eventually(() => announced() === all.length, 40_000);
    const late = all.filter(
      (id) => events.lastIndexOf(`notification.added.v1 ${id}`) > events.indexOf(`notification.deleted.v1 ${id}`),
    );
    expect({ seed, late, letters: await cluster.waiting('dead') }).toEqual({ seed, late: [], letters: 0 });
    caller.report(`deletion beside repeated adds, SIGKILL of a writer, ${ROUNDS} times (${all.length} deleted)`);
  }, 600_000);
});
