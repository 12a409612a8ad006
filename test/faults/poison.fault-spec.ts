import { join } from 'node:path';
import { connect } from 'amqplib';
import { eventually } from '@app/testing/eventually';
import { describeFaults, type Fault } from './harness/run-fault';
import { supervise } from './harness/supervise';

const DEAD_LETTERS = 'notifications.commands.crashed';

const poison = (neighbours: number): Fault => ({
  name: `a message that kills its process, among ${neighbours} good ones`,
  async inject({ cluster, workload }) {
    const connection = await connect(cluster.broker.url);
    const channel = await connection.createConfirmChannel();
    const stop = supervise(cluster.writers.map(({ process }) => process));
    try {
      const publishSome = () =>
        Array.from({ length: neighbours / 2 }, () => workload.publish(channel, workload.newNotification(0, true)));
      const good = publishSome();
      const { data } = workload.newNotification();
      const body = Buffer.from(JSON.stringify({ ...data, displayBodyMessage: 'the poison pill' }));
      const options = { persistent: true, messageId: 'poison', headers: { 'x-api-key': 'demo-key' } };
      channel.publish('commands', 'notifications.add.v1', body, options);
      await Promise.all([...good, ...publishSome()]);
      // About six processes must start and end before.
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
  env: { notifications: { NODE_OPTIONS: `--require "${join(process.cwd(), 'test/faults/harness/poison.cjs')}"` } },
});
