import { randomBytes } from 'node:crypto';
import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { openConnection } from '@app/amqp/connection/open-connection';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { Management } from './management';
import { eventually } from '../eventually';
import { requiredEnv } from '../required-env';

export interface TestBroker {
  /** Full rights on a virtual host that only this test file uses. */
  url: string;
  management: Management;
  drop(): Promise<void>;
}

/** Creates an empty virtual host for one test file, on the broker of the test run. */
export async function createTestBroker(): Promise<TestBroker> {
  const url = new URL(requiredEnv('TEST_AMQP_URL'));
  const vhost = `test_${randomBytes(6).toString('hex')}`;
  const management = new Management(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'), vhost);
  await management.put(`vhosts/${vhost}`);
  await management.put(`permissions/${vhost}/${url.username}`, { configure: '.*', write: '.*', read: '.*' });
  url.pathname = `/${vhost}`;
  return { url: url.href, management, drop: () => management.delete(`vhosts/${vhost}`) };
}

/** Such a virtual host with the exchanges and queues of the system, and a channel of the test itself. */
export interface DeclaredBroker extends TestBroker {
  model: ChannelModel;
  channel: ConfirmChannel;
}

export async function createDeclaredBroker(): Promise<DeclaredBroker> {
  const broker = await createTestBroker();
  await declareTopology(broker.url);
  const model = await openConnection({ url: broker.url, name: 'test' });
  const drop = async () => {
    await model.close();
    await broker.drop();
  };
  return { ...broker, model, channel: await model.createConfirmChannel(), drop };
}

/** Fills a queue without consumers until it refuses messages. Its limit takes effect a moment after it is set. */
export async function fillQueue({ url, management }: TestBroker, queue: string): Promise<void> {
  await management.limitQueue(queue, 1);
  const model = await openConnection({ url, name: 'test' });
  const channel = await model.createConfirmChannel();
  const isRefused = () =>
    new Promise<boolean>((resolve) =>
      channel.sendToQueue(queue, Buffer.from('{}'), { persistent: true }, (error) => resolve(Boolean(error))),
    );
  await eventually(isRefused);
  await model.close();
}
