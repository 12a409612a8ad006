import { join } from 'node:path';
import { connect } from 'amqplib';
import { eventually } from '@app/testing/eventually';
import type { Cluster } from './cluster';
import { describeFaults, type Fault } from './run-fault';

const DEAD_LETTERS = 'notifications.commands.crashed';

/** Starts writers again when they have ended, as whatever runs them does. @returns what ends it, once all of them are ready */
function supervise({ writers }: Cluster): () => Promise<void> {
  let starting: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    // One that dies again before it is ready is started again.
    for (const { process } of writers) if (process.exitCode !== undefined) starting = process.start().catch(() => undefined);
  }, 20);
  const isReady = ({ process }: Cluster['writers'][number]) =>
    process.health('ready').then(
      ({ status }) => status === 200,
      () => false,
    );
  return async () => {
    try {
      // The last one may have ended a moment ago.
      await eventually(async () => (await Promise.all(writers.map(isReady))).every(Boolean), 30_000, 200);
    } finally {
      clearInterval(timer);
      await starting;
    }
  };
}

const poison = (neighbours: number): Fault => ({
  name: `a message that kills its process, among ${neighbours} good ones`,
  async inject({ cluster, workload }) {
    const connection = await connect(cluster.broker.url);
    const channel = await connection.createConfirmChannel();
    const stop = supervise(cluster);
    try {
      const publishSome = () =>
        Array.from({ length: neighbours / 2 }, () => workload.publish(channel, workload.newNotification(0, true)));
      const good = publishSome();
      const { data } = workload.newNotification();
      const body = Buffer.from(JSON.stringify({ ...data, displayBodyMessage: 'the poison pill' }));
      const options = { persistent: true, messageId: 'poison', headers: { 'x-api-key': 'demo-key' } };
      channel.publish('commands', 'notifications.add.v1', body, options);
      await Promise.all([...good, ...publishSome()]);
      // Half a dozen processes have to start and end before.
      await eventually(async () => (await cluster.waiting('dead')) > 0, 180_000, 200);
      await workload.stored(neighbours);
    } finally {
      await stop();
    }
    const dead = [];
    for (let letter; (letter = await channel.get(DEAD_LETTERS, { noAck: true }));) dead.push(letter.properties.messageId);
    await connection.close();
    if (dead.join() !== 'poison') throw new Error(`in the dead letters: ${dead.join()}`);
  },
});

describeFaults('poison', [poison(1000)], {
  env: { notifications: { NODE_OPTIONS: `--require "${join(process.cwd(), 'test/faults/poison.cjs')}"` } },
});
