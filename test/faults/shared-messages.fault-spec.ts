import { join } from 'node:path';
import { connect } from 'amqplib';
import { eventually } from '@app/testing/eventually';
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

/** Removes the letters. @throws Error when one of them is no poison */
async function takePoison({ broker }: Cluster): Promise<void> {
  const connection = await connect(broker.url);
  const channel = await connection.createChannel();
  for (let letter; (letter = await channel.get(CRASHED, { noAck: true }));)
    if (!letter.content.includes(PILL))
      throw new Error(`a good command became a letter: ${JSON.stringify(letter.properties.headers)}`);
  await connection.close();
}

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
    await takePoison(cluster);
  },
});

// A third cut would hit suspects only: nothing else is acknowledged meanwhile.
describeFaults('commands that share a message', [
  inBursts({ ...killWriters(5, 160), share: 0.9 }),
  inBursts(cutAfterPublish(10)),
  inBursts(cutAfterCommit(3)),
  inBursts({ ...cutBeforeAck(2), share: 0.9 }),
  inBursts(dropReplies(2)),
  inBursts(cutAnywhere(20)),
]);

describeFaults('poison among commands that share a message', [inBursts(poisonAmongGood(3))], {
  env: { notifications: { NODE_OPTIONS: `--require "${join(process.cwd(), 'test/faults/harness/poison.cjs')}"` } },
});
