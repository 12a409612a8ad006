import { Registry } from 'prom-client';
import type { ConfirmChannel, ChannelModel, Options } from 'amqplib';
import { OPEN_MESSAGES } from '@app/contracts/all-messages';
import { DEAD, DeadLetterBox, REFUSED } from '@app/testing/broker/dead-letter-box';
import { eventually } from '@app/testing/eventually';
import { startUsersStub } from '@app/testing/system/users-stub';
import { openConnection } from '@app/amqp/connection/open-connection';
import { rightsFor } from '../accounts/rights';
import { LANES, type Lane } from '@app/rabbitmq/topology/topology';

const EARLIER = 'users.commands';
const TEN = Array.from({ length: 10 }, (_, index) => `m-${index}`);
const BODY = Buffer.from('{"organizationId":"o","users":[{"userId":"u"}]}');
const EVERYTHING = ['operation', 'status', 'reason', 'attempts', 'firstFailedAt'];

/** All headers that services and the broker write into a dead letter, forged by a publisher. */
const forged = (messageId: string, service: string) => ({
  persistent: true,
  messageId,
  appId: `gateway (${service})`,
  type: 'users.exists.v1',
  headers: {
    'x-api-key': 'of-another-tenant',
    'x-death': [
      {
        queue: EARLIER,
        reason: 'expired',
        exchange: 'retry',
        'routing-keys': ['documents.set.v1'],
        count: 1,
        time: { '!': 'timestamp', value: 1_600_000_000 },
      },
    ],
    'x-origin-user': service,
    'x-routing-key': 'users.authenticate.v1',
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

describe('forged headers', () => {
  const box = new DeadLetterBox();
  let evil: string;
  const models: ChannelModel[] = [];

  beforeAll(async () => {
    await box.open();
    evil = `evil-${box.vhost}`;
  });
  afterAll(async () => {
    for (const model of models) await model.close();
    await box.broker?.management.delete(`users/${evil}`);
    await box.drop();
  });
  beforeEach(async () => {
    await box.empty();
    for (const queue of [EARLIER, ...LANES.map((_, lane) => `users.commands.${lane}`)]) await box.channel.purgeQueue(queue);
  });

  /** A channel of an account that may only publish open commands to one lane. */
  async function publisherOn(lane: Lane): Promise<ConfirmChannel> {
    const { management, url } = box.broker;
    const operations = OPEN_MESSAGES.map(({ pattern }) => pattern);
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

  /** A lane refuses a message with an x-death, whatever else it has. */
  function withoutDeath(): Record<string, unknown> {
    const { 'x-death': _, ...headers } = forged('', box.account).headers;
    return headers;
  }

  async function publishTen(lane: Lane, properties: Options.Publish): Promise<void> {
    const channel = await publisherOn(lane);
    for (const id of TEN) channel.publish(LANES[lane], 'users.add.v1', BODY, { ...forged(id, box.account), ...properties });
    await channel.waitForConfirms();
  }

  /** Runs with a users service that denies every publisher. It must be asked only about the given accounts, and must execute nothing. */
  async function withService(asked: string[], work: () => Promise<void>): Promise<void> {
    const accounts = new Set<string>();
    const isGranted = async (account: string) => {
      accounts.add(account);
      return false;
    };
    const add = jest.fn();
    const server = await startUsersStub(
      {
        connection: { url: box.broker.url, name: 'users' },
        metrics: new Registry(),
        publishers: { trusted: [box.account], isGranted },
      },
      { add, authenticate: () => ({}), exists: () => ({}) },
    );
    try {
      await eventually(() => server.check() === undefined);
      await work();
      expect([...accounts]).toEqual(asked);
      expect(add).not.toHaveBeenCalled();
    } finally {
      await server.close();
    }
  }

  /** Checks that all ten are in the refused queue, as commands of the denied account. */
  async function expectTenDenied(): Promise<void> {
    await eventually(async () => (await box.ready(REFUSED)) === 10);
    const letters = await box.listed('list');
    expect(letters.map(({ id }) => id).sort()).toEqual(TEN);
    for (const letter of letters) {
      expect(letter).toMatchObject({
        queue: REFUSED,
        origin: 'service',
        publisher: evil,
        operation: 'users.add.v1',
        status: 'PERMISSION_DENIED',
        attempts: 1,
        stub: false,
        sha256: null,
        unproved: [],
      });
      expect(Date.parse(String(letter.firstFailedAt))).toBeGreaterThan(1_600_000_000_000);
    }
  }

  it.each<Lane>([0, 3])('is not in a letter of a service, nor after its replay, 10 of 10 in lane %d', async (lane) => {
    await withService([evil], async () => {
      await publishTen(lane, { userId: evil, headers: withoutDeath() });
      await expectTenDenied();
      const [shown] = (await box.tool('show --id m-0')).printed;
      expect(shown).toContain(`  publisher: ${evil}\n`);
      expect(shown).toContain(`  x-lane: ${LANES[lane]}\n`);
      expect(shown).not.toMatch(/users\.authenticate|x-death|of a call|bug of ours/);
      const [, , row] = (await box.tool('list --limit 1')).printed[0].split('\n');
      expect(row).toContain(`${evil}  "gateway (${box.account})"`);

      const { audited } = await box.tool('replay --all');
      expect(audited.map(({ outcome, publisher }) => [outcome, publisher])).toEqual(Array(10).fill(['replayed', evil]));
      await expectTenDenied();
    });
  });

  it('has no rights without user_id', async () => {
    await withService([''], async () => {
      await publishTen(1, { headers: withoutDeath() });
      await eventually(async () => (await box.ready(REFUSED)) === 10);
    });
    expect((await box.listed('list')).map(({ origin, publisher }) => [origin, publisher])).toEqual(
      Array(10).fill(['service', null]),
    );
    expect((await box.tool('list --limit 1')).printed[0]).toMatch(/ none {2}/);
    await box.tool('replay --all');
    const replayed = await box.take('users.again');
    expect(replayed).toHaveLength(10);
    for (const { properties } of replayed) {
      expect(properties.headers).not.toHaveProperty('x-origin-user');
      expect(properties.headers).toMatchObject({ 'x-routing-key': 'users.add.v1', 'x-lane': 'commands.1' });
    }
  });

  // Dead-lettering keeps the user_id of the original publisher.
  it('is refused with an x-death, whoever has the user_id, and only a stub of it is kept', async () => {
    await withService([], async () => {
      await publishTen(1, { userId: evil });
      await eventually(async () => (await box.ready(REFUSED)) === 10);
    });
    expect((await box.listed('list')).map(({ publisher, status, stub }) => [publisher, status, stub])).toEqual(
      Array(10).fill([null, 'INVALID_ARGUMENT', true]),
    );
    expect((await box.tool('replay --all')).noted).toEqual(['10 kept.']);
  });

  describe('in dead letters of unknown origin', () => {
    /** The ways in which such dead letters arise. */
    const WAYS: [string, queue: string, bury: () => Promise<void>][] = [
      // RabbitMQ up to 3.12 adds its own entry to a forged x-death.
      ['expired in the queue of versions without lanes', REFUSED, () => expireTen({ userId: evil })],
      ['expired there, without a user_id', REFUSED, () => expireTen({})],
      ['put there by a service of such a version', REFUSED, () => publishLetters(EARLIER)],
      ['put there by a service of an earlier version', DEAD, () => publishLetters(DEAD)],
    ];

    /** Like during an upgrade that is not finished. */
    async function expireTen(properties: { userId?: string }): Promise<void> {
      await box.channel.bindQueue(EARLIER, LANES[0], 'users.add.v1');
      await publishTen(0, { ...properties, expiration: 1 });
      await box.channel.unbindQueue(EARLIER, LANES[0], 'users.add.v1');
    }

    /** Like services of versions that set no user_id. */
    async function publishLetters(routingKey: string): Promise<void> {
      for (const id of TEN) box.channel.publish('dead', routingKey, BODY, forged(id, box.account));
      await box.channel.waitForConfirms();
    }

    it.each(WAYS)('have no effect, 10 of 10: %s', async (_, queue, bury) => {
      await bury();
      await eventually(async () => (await box.ready(queue)) === 10);
      const letters = await box.listed('list');
      expect(letters.map(({ id }) => id).sort()).toEqual(TEN);
      for (const letter of letters) {
        expect(letter).toMatchObject({ queue, origin: 'unknown', publisher: null, stub: false, unproved: EVERYTHING });
      }
      expect((await box.tool('show --id m-0')).printed[0]).toContain('\nHeaders (unproved)\n');
      for (const line of ['replay --all', `replay --all --as ${evil}`]) {
        expect((await box.tool(line)).noted).toEqual(['10 kept.']);
      }
      await expect(box.tool(`replay --all --as ${box.account}`)).rejects.toThrow('--as with it needs --id ID');
      expect(await box.ready('users.again')).toBe(0);
    });
  });

  it('give a dead letter of unknown origin only the rights of the named account, 10 of 10', async () => {
    for (const id of TEN) {
      const { headers, ...properties } = forged(id, box.account);
      box.channel.publish('dead', DEAD, BODY, { ...properties, headers: { ...headers, 'x-routing-key': 'users.add.v1' } });
    }
    await box.channel.waitForConfirms();
    await eventually(async () => (await box.ready(DEAD)) === 10);
    await withService([evil], async () => {
      expect((await box.tool(`replay --all --as ${evil}`)).noted).toEqual(['10 replayed.']);
      await expectTenDenied();
    });
  });
});
