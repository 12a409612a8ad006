import { join } from 'node:path';
import { connect } from 'amqplib';
import { commandMessage } from '@app/amqp/messages/command-format';
import type { Request } from '@app/amqp/messages/message-properties';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import type { Cluster } from './harness/cluster';
import { cutAnywhere, cutAfterCommit, cutAfterPublish, cutBeforeAck, dropReplies, killWriters } from './harness/faults';
import { describeFaults, type Fault } from './harness/run-fault';
import { supervise } from './harness/supervise';

const BURST = 16;
/** Least commands that share a message during a fault. Some faults last only as long as two bursts. */
const LEAST_SHARED = BURST / 2;
const CRASHED = 'notifications.commands.crashed';
const SUSPECTS = 'notifications.suspects';
const PILL = 'the poison pill';
const PATTERN = 'notifications.add.v1';
/** Six processes end with a command before it is a letter, and pauses are between them. */
const PATIENCE_MS = 180_000;

/** Commands that were not alone in their message. */
async function sharing({ gateway }: Cluster): Promise<number> {
  const text = await gateway.process.metrics();
  const sum = (name: string) =>
    [...text.matchAll(new RegExp(`^rabbitmq_commands_per_message_${name}\\{.*\\} (\\d+)$`, 'gm'))].reduce(
      (all, [, n]) => all + Number(n),
      0,
    );
  return sum('sum') - sum('count');
}

/** The same fault with callers that come at the same moment. */
const inBursts = (fault: Fault): Fault => ({
  ...fault,
  name: `${fault.name}, ${BURST} calls at a time`,
  burst: BURST,
  ratePerSecond: Math.max(160, fault.ratePerSecond ?? 0),
  async inject(context) {
    const before = await sharing(context.cluster);
    const figures = await fault.inject(context);
    const shared = (await sharing(context.cluster)) - before;
    if (shared < LEAST_SHARED) throw new Error(`only ${shared} commands shared a message with another one`);
    return figures;
  },
});

/** Their callers are gone before the poison is handled six times, so none of them becomes a letter. */
const poisonAmongGood = (times: number): Fault => ({
  name: `a command that kills its process, among ${BURST - 1} that are sent at the same time, ${times} times`,
  // While the suspects are handled, calls wait until there is no room for more.
  allowed: [429, 503, 504],
  async inject({ cluster, workload }) {
    const stop = supervise(cluster.writers.map(({ process }) => process));
    try {
      for (let time = 0; time < times; time++) {
        const good = Array.from({ length: BURST - 1 }, () => workload.newNotification());
        const poison = workload.newNotification();
        Object.assign(poison.data, { displayBodyMessage: PILL });
        await Promise.all([...good, poison].map((thing) => workload.ask(thing)));
        await workload.answers(30);
      }
    } finally {
      await stop();
    }
    // The broker moves a crashed command a moment after it has left the queue of the suspects.
    const { management } = cluster;
    const suspects = async () => (await management.get<{ messages?: number }>(`queues/%2F/${SUSPECTS}`)).messages;
    await eventually(async () => (await suspects()) === 0, 30_000, 500);
  },
});

/** Its caller waits long enough for a letter. */
const poisonInMessage: Fault = {
  name: `a command that kills its process until it is a letter, in a message with ${BURST - 1} good ones`,
  allowed: [429, 503, 504],
  async inject({ cluster: { broker, writers }, workload }) {
    const connection = await connect(broker.url);
    const channel = await connection.createConfirmChannel();
    // Nobody reads the replies.
    const { queue: replyTo } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(replyTo, 'replies', replyTo);
    const requests: Request[] = [];
    const { open: confirm, opened: confirmed } = gate();
    const add = (body: Buffer, messageId: string, { 'x-api-key': apiKey, ...headers }: Record<string, string | undefined>) => {
      const options = { apiKey, requestId: messageId, timeoutMs: PATIENCE_MS, messageId };
      const idempotencyKey = headers['x-idempotency-key'];
      const deadline = performance.now() + PATIENCE_MS;
      const operation = { kind: 'command', pattern: PATTERN } as const;
      requests.push({ operation, body, options: { ...options, idempotencyKey }, correlationId: messageId, deadline });
      return confirmed;
    };
    const good = Array.from({ length: BURST - 1 }, () =>
      workload.publishBy((body, { messageId, headers }) => add(body, messageId, headers), workload.newNotification(0, true)),
    );
    const { data } = workload.newNotification();
    const poison = Buffer.from(JSON.stringify({ ...data, displayBodyMessage: PILL }));
    void add(poison, 'poison', { 'x-api-key': 'demo-key' });
    const sender = { appId: 'test', userId: new URL(broker.url).username };
    const stop = supervise(writers.map(({ process }) => process));
    try {
      const { body, properties } = commandMessage(requests, 'all of them', sender, replyTo);
      channel.publish('calls', PATTERN, body, properties);
      await channel.waitForConfirms();
      confirm();
      await Promise.all(good);
      await eventually(async () => (await channel.checkQueue(CRASHED)).messageCount > 0, PATIENCE_MS, 200);
      await workload.stored(BURST - 1);
    } finally {
      await stop();
    }
    const letters: string[] = [];
    for (let letter; (letter = await channel.get(CRASHED, { noAck: true }));)
      letters.push(JSON.stringify([letter.properties.messageId, letter.properties.type, letter.content.toString()]));
    await connection.close();
    const wanted = JSON.stringify(['poison', PATTERN, poison.toString()]);
    if (letters.length !== 1 || letters[0] !== wanted) throw new Error(`the letters are ${letters.join()}`);
  },
};

// A third cut would hit suspects only: nothing else is acknowledged meanwhile.
describeFaults('commands that share a message', [
  inBursts({ ...killWriters(5, 160), share: 0.9 }),
  inBursts(cutAfterPublish(10)),
  inBursts(cutAfterCommit(3)),
  inBursts({ ...cutBeforeAck(2), share: 0.9 }),
  inBursts(dropReplies(2)),
  inBursts(cutAnywhere(20)),
]);

describeFaults('poison among commands that share a message', [inBursts(poisonAmongGood(3)), poisonInMessage], {
  env: { notifications: { NODE_OPTIONS: `--require "${join(process.cwd(), 'test/faults/harness/poison.cjs')}"` } },
});
