import { Registry } from 'prom-client';
import type { ConfirmChannel, ChannelModel } from 'amqplib';
import { OPEN_OPERATIONS } from '@app/contracts/open-operations';
import { DeadLetterBox } from '@app/testing/dead-letter-box';
import { eventually } from '@app/testing/eventually';
import { startUsersStub, type UsersHandlers } from '@app/testing/users-stub';
import { openConnection } from '@app/amqp/open-connection';
import { rightsFor } from '../accounts';
import { LANES, type Lane } from '../topology';

const EXPIRED = 'users.commands.expired';
const REFUSED = 'users.commands.refused';

/** Everything that a service says of a letter, and what the broker says, as a publisher writes it. */
const forged = (messageId: string, service: string, queue: string) => ({
  persistent: true,
  messageId,
  expiration: 1,
  appId: `gateway (${service})`,
  type: 'users.exists.v1',
  headers: {
    'x-api-key': 'of-another-tenant',
    'x-death': [
      {
        queue,
        reason: 'expired',
        exchange: 'retry',
        'routing-keys': ['documents.set.v1'],
        count: 1,
        time: { '!': 'timestamp', value: 1_600_000_000 },
      },
    ],
    'x-origin-user': service,
    'x-routing-key': 'documents.set.v1',
    'x-dead-status': 'INTERNAL',
    'x-dead-reason': 'A bug of ours.',
    'x-lane': 'calls',
    'x-attempt': 7,
    'x-first-failed-at': 1_600_000_000_000,
    'x-correlation-id': 'of a call',
    'x-dead-size': 1,
    'x-dead-sha256': 'ab'.repeat(32),
  },
});

describe('what a publisher has made up', () => {
  let box: DeadLetterBox;
  let evil: string;
  const models: ChannelModel[] = [];

  beforeAll(async () => {
    box = await DeadLetterBox.create();
    evil = `evil-${box.vhost}`;
  });
  afterAll(async () => {
    for (const model of models) await model.close();
    await box?.broker.management.delete(`users/${evil}`);
    await box?.drop();
  });
  beforeEach(() => box.empty());

  /** A channel of the account, which may publish open commands to one lane and nothing else. */
  async function publisherOn(lane: Lane): Promise<ConfirmChannel> {
    const { management, url } = box.broker;
    const operations = OPEN_OPERATIONS.map(({ pattern }) => pattern);
    const rights = rightsFor(evil, { operations, lane, replies: false, events: [] });
    await management.put(`users/${evil}`, { password: 'secret', tags: '' });
    const { configure, write, read } = rights;
    await management.put(`permissions/${box.vhost}/${evil}`, { configure, write, read });
    await management.put(`topic-permissions/${box.vhost}/${evil}`, { exchange: LANES[lane], write: rights.commands, read: '^$' });
    const own = new URL(url);
    own.username = evil;
    own.password = 'secret';
    const model = await openConnection({ url: own.href, name: 'evil' });
    models.push(model);
    return model.createConfirmChannel();
  }

  /** Publishes ten that expire behind a backlog which nobody consumes. */
  async function publishTen(lane: Lane, userId: string | undefined): Promise<void> {
    const channel = await publisherOn(lane);
    const queue = lane === 0 ? 'users.commands' : `users.commands.${lane}`;
    await box.channel.purgeQueue(queue);
    for (let index = 0; index < 20; index++) {
      channel.publish(LANES[lane], 'users.add.v1', Buffer.from('{}'), { persistent: true });
    }
    for (let index = 0; index < 10; index++) {
      const properties = { ...forged(`m-${index}`, box.account, queue), userId };
      channel.publish(LANES[lane], 'users.add.v1', Buffer.from('{"organizationId":"o","users":[{"userId":"u"}]}'), properties);
    }
    await channel.waitForConfirms();
    // It expires at the head of its queue.
    for (let index = 0; index < 20; index++) await box.channel.get(queue, { noAck: true });
    await eventually(async () => (await box.ready(EXPIRED)) === 10);
  }

  it.each<Lane>([1, 3])('is shown as what the broker vouches for, 10 of 10 in lane %d', async (lane) => {
    await publishTen(lane, evil);
    const letters = await box.listed('list');
    expect(letters).toHaveLength(10);
    for (const letter of letters) {
      expect(letter).toMatchObject({
        queue: EXPIRED,
        origin: 'publisher',
        publisher: evil,
        operation: 'users.add.v1',
        status: 'EXPIRED',
        reason: 'expired in its queue: it was published with an expiration',
        attempts: null,
        stub: false,
        unproved: ['firstFailedAt'],
      });
    }
    const [shown] = (await box.tool('show --id m-0')).printed;
    expect(shown).toContain(`  publisher: ${evil}\n`);
    expect(shown).toContain('\nHeaders (unproved)\n');
    const [, , row] = (await box.tool('list --limit 1')).printed[0].split('\n');
    expect(row).toContain(`${evil}  "gateway (${box.account})"`);
  });

  it.each<Lane>([1, 2])('may do what its account may do after a replay, and no more: lane %d', async (lane) => {
    await publishTen(lane, evil);
    const carriedOut: string[] = [];
    const asked = new Set<string>();
    const add: UsersHandlers['add'] = (_, context) => {
      carriedOut.push(context.apiKey);
      return {};
    };
    const server = await startUsersStub(
      {
        connection: { url: box.broker.url, name: 'users' },
        metrics: new Registry(),
        publishers: {
          trusted: [box.account],
          isGranted: async (publisher, apiKey) => {
            asked.add(publisher);
            return publisher === evil && apiKey === 'its-own';
          },
        },
      },
      { add, authenticate: () => ({}), exists: () => ({}) },
    );
    try {
      await eventually(() => server.check() === undefined);
      const { audited } = await box.tool('replay --kind expired --all');
      expect(audited.map(({ outcome, publisher }) => [outcome, publisher])).toEqual(Array(10).fill(['replayed', evil]));
      await eventually(async () => (await box.ready(REFUSED)) === 10);
      for (const letter of await box.listed('list')) {
        expect(letter).toMatchObject({ queue: REFUSED, origin: 'service', status: 'PERMISSION_DENIED', publisher: evil });
        expect(letter.operation).toBe('users.add.v1');
      }
      expect([...asked]).toEqual([evil]);
      expect(carriedOut).toEqual([]);
    } finally {
      await server.close();
    }
  });

  it('is nobody without user_id', async () => {
    await publishTen(1, undefined);
    expect((await box.listed('list')).map(({ origin, publisher }) => [origin, publisher])).toEqual(
      Array(10).fill(['publisher', null]),
    );
    expect((await box.tool('list --limit 1')).printed[0]).toMatch(/ nobody {2}/);
    await box.tool('replay --all');
    for (const { properties } of await box.take('users.again')) {
      expect(properties.headers).not.toHaveProperty('x-origin-user');
      expect(properties.headers).toMatchObject({ 'x-routing-key': 'users.add.v1', 'x-lane': 'commands' });
    }
  });

  it('has no operation in lane 0, whose letters come with a fixed routing key, and stays', async () => {
    await publishTen(0, evil);
    const letters = await box.listed('list');
    expect(letters.map(({ publisher, operation }) => [publisher, operation])).toEqual(Array(10).fill([evil, null]));
    const { audited } = await box.tool('replay --all');
    expect(new Set(audited.map(({ reason }) => reason))).toEqual(
      new Set(['nothing tells the operation that it was published for']),
    );
  });

  it('is of unknown origin in lane 0 without user_id', async () => {
    await publishTen(0, undefined);
    const letters = await box.listed('list');
    expect(letters.map(({ origin, publisher }) => [origin, publisher])).toEqual(Array(10).fill(['unknown', null]));
  });
});
