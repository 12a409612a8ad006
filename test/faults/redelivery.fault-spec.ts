import { randomUUID } from 'node:crypto';
import { connect, type ChannelModel, type ConfirmChannel } from 'amqplib';
import { eventually } from '@app/testing/eventually';
import { Caller } from './harness/caller';
import { Cluster, type Node } from './harness/cluster';
import { BASIC_ACK } from './harness/fault-proxy';
import { Random, seedOfRun } from './harness/random';

const ROUNDS = 10;
const ORGANIZATION = 'redelivered';

interface Later {
  first: [pattern: string, data: object, headers?: object];
  /** Answered before the redelivery of the first. */
  then: [operation: string, data: object];
  /** The second answer is still true. */
  holds: () => Promise<boolean>;
}

/** A command is done and its reply and ack never leave the process. Something else is answered 200, and then the command is delivered again. */
describe('redelivery', () => {
  const seed = seedOfRun();
  let cluster: Cluster;
  let caller: Caller;
  let connection: ChannelModel;
  let channel: ConfirmChannel;
  let replyTo: string;
  const replies = new Map<string, string>();

  beforeAll(async () => {
    cluster = await Cluster.start(new Random(seed), { users: 2, writers: 2 });
    caller = new Caller(cluster);
    connection = await connect(cluster.broker.url);
    channel = await connection.createConfirmChannel();
    ({ queue: replyTo } = await channel.assertQueue('', { exclusive: true }));
    await channel.bindQueue(replyTo, 'replies', replyTo);
    await channel.consume(replyTo, (message) => {
      if (message) replies.set(String(message.properties.correlationId), message.content.toString());
    });
  });
  afterAll(async () => {
    await connection?.close();
    await cluster?.remove();
  });

  const call = <Result>(operation: string, data: object) =>
    caller.untilDone<Result>(operation, { organizationId: ORGANIZATION, ...data });
  const of = async <Item>(operation: string, data: object) => (await call<{ data: Item[] }>(operation, data)).data;

  /** Publishes a command. @returns the process that has executed it, and whose reply and ack are held back */
  async function held(id: string, pattern: string, data: object, headers?: object): Promise<Node> {
    let holder: Node | undefined;
    for (const node of cluster.nodes)
      node.toBroker.inspector = (bytes, direction) => {
        if (direction === 'toClient') return 'pass';
        // The reply has the id. It leaves on a connection of its own, so the ack may be here first.
        if (bytes.includes(id)) holder = node;
        return holder === node || bytes.includes(BASIC_ACK) ? 'hold' : 'pass';
      };
    // Processes take turns at the calls: the next one goes to another process than that which holds this one.
    channel.publish('calls', pattern, Buffer.from(JSON.stringify({ organizationId: ORGANIZATION, ...data })), {
      persistent: true,
      messageId: id,
      correlationId: id,
      replyTo,
      headers: { 'x-api-key': cluster.tenants[0]['x-svc-api-key'], ...headers },
    });
    await eventually(() => holder, 5000);
    // Of the other processes nothing is held, also of the redelivery.
    for (const node of cluster.nodes) if (node !== holder) node.toBroker.heal();
    return holder!;
  }

  it.each<[string, (n: number) => Later]>([
    [
      'users/delete, then users/add',
      (n) => ({
        first: ['users.delete.v1', { userIds: [`kept ${n}`] }],
        then: ['users/add', { users: [{ userId: `kept ${n}` }] }],
        holds: async () => (await of('users/get', { userIds: [`kept ${n}`] })).length === 1,
      }),
    ],
    [
      'users/add with a key, then users/delete',
      (n) => ({
        first: ['users.add.v1', { users: [{ userId: `gone ${n}` }] }, { 'x-idempotency-key': `key ${n}` }],
        then: ['users/delete', { userIds: [`gone ${n}`] }],
        holds: async () => (await of('users/get', { userIds: [`gone ${n}`] })).length === 0,
      }),
    ],
    [
      'notifications/delete of a document, then notifications/add',
      (n) => ({
        first: ['notifications.delete.v1', { documentId: `document ${n}` }],
        then: ['notifications/add', notification(n, `new ${n}`)],
        holds: async () => (await of('notifications/get', { documentId: `document ${n}` })).length === 1,
      }),
    ],
    [
      'read up to, then "unread"',
      (n) => ({
        first: ['notifications.update.v1', { userId: `reader ${n}`, readUpTo: 8.64e15 }],
        then: ['notifications/update', { notifications: [{ id: `old ${n}`, unreadByUserIds: [`reader ${n}`] }] }],
        holds: async () => {
          const [{ read }] = await of<{ read: boolean }>('notifications/inbox', { userId: `reader ${n}` });
          return !read;
        },
      }),
    ],
  ])(
    '%s: the later answer holds',
    async (name, laterOf) => {
      for (let round = 0; round < ROUNDS; round++) {
        const number = Math.floor(Random.for(seed, `${name} ${round}`).next() * 1e9);
        const { first, then, holds } = laterOf(number);
        await call('users/add', { users: [{ userId: `kept ${number}` }, { userId: `reader ${number}` }] });
        await call('notifications/add', notification(number, `old ${number}`));
        const id = randomUUID();
        const holder = await held(id, ...first);
        await call(...then);
        expect({ seed, round, answered: replies.has(id) }).toEqual({ seed, round, answered: false });
        await holder.process.stop('SIGKILL');
        holder.toBroker.cut('reset');
        holder.toBroker.heal();
        await eventually(() => replies.has(id), 10_000);
        expect({ seed, round, reply: replies.get(id) }).toMatchObject({
          seed,
          round,
          reply: expect.stringContaining('success') as string,
        });
        expect({ seed, round, holds: await holds() }).toEqual({ seed, round, holds: true });
        await holder.process.start();
      }
      caller.report(`killed between COMMIT and ack, ${ROUNDS} times: ${name}`);
      caller.statuses.length = 0;
    },
    300_000,
  );
});

const notification = (number: number, notificationId: string) => ({
  documentId: `document ${number}`,
  notificationId,
  actionUser: { userId: 'actor' },
  displayHeadlineMessageTemplate: 'Hello',
  notifyUsers: [{ userId: `reader ${number}` }],
});
