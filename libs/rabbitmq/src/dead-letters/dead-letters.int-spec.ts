import type { ChannelModel, ConfirmChannel, GetMessage, Options } from 'amqplib';
import { Registry } from 'prom-client';
import { ApiError } from '@app/contracts/error';
import { createTestBroker, type TestBroker } from '@app/testing/broker';
import { eventually } from '@app/testing/eventually';
import { startUsersStub, type UsersHandlers } from '@app/testing/users-stub';
import { declareTopology } from '../declare-topology';
import type { DeliveryContext } from '../delivery-context';
import { openConnection } from '@app/amqp/open-connection';
import type { RabbitServer } from '../rabbit.server';
import type { AuditLine } from './audit';
import { readCommandLine } from './command-line';
import { BOUNDS, OpenedQueue, type Bounds } from './opened-queue';
import { run } from './run';

const DEAD = 'users.commands.dead';
const BODY = { organizationId: 'o', users: [{ userId: 'u' }] };

interface Said {
  done: boolean;
  printed: string[];
  noted: string[];
  audited: AuditLine[];
}

describe('dead letters', () => {
  let broker: TestBroker;
  let model: ChannelModel;
  let channel: ConfirmChannel;

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createConfirmChannel();
  });

  afterAll(async () => {
    await model?.close();
    await broker?.drop();
  });

  beforeEach(async () => {
    for (const queue of [DEAD, 'notifications.commands.dead', 'users.commands', 'notifications.commands']) {
      await channel.purgeQueue(queue);
    }
  });

  /** Runs the tool on a connection of its own. */
  async function tool(
    line: string,
    options: { signal?: AbortSignal; bounds?: Bounds; onAudit?: () => void } = {},
  ): Promise<Said> {
    const invocation = readCommandLine(line.split(' '));
    if (!invocation) throw new Error('that only helps');
    const said: Said = { done: false, printed: [], noted: [], audited: [] };
    const own = await openConnection({ url: broker.url, name: 'dead letters' });
    try {
      said.done = await run(own, invocation, {
        print: (text) => void said.printed.push(text),
        note: (text) => void said.noted.push(text),
        audit: (line) => {
          said.audited.push(line);
          options.onAudit?.();
        },
        signal: options.signal ?? new AbortController().signal,
        ...(options.bounds && { bounds: options.bounds }),
      });
    } finally {
      await own.close();
    }
    return said;
  }

  /** Puts a letter where a service would, with what a service would say of it. */
  const bury = (
    id: string | undefined,
    headers: Record<string, unknown> = {},
    options: Options.Publish = {},
    body: unknown = BODY,
  ) =>
    channel.publish('dead', 'users.commands', Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)), {
      persistent: true,
      messageId: id,
      contentType: 'application/json',
      ...options,
      headers: {
        'x-api-key': 'key',
        'x-routing-key': 'users.add.v1',
        'x-attempt': 1,
        'x-first-failed-at': Date.parse('2026-01-01T00:00:00Z'),
        'x-dead-status': 'NOT_FOUND',
        'x-dead-reason': 'No such organization.',
        ...headers,
      },
    });

  const ready = async (queue: string) => (await channel.checkQueue(queue)).messageCount;

  /** Buries as many letters and waits until the queue counts them. */
  async function buryAll(letters: Parameters<typeof bury>[]) {
    for (const letter of letters) bury(...letter);
    await channel.waitForConfirms();
    await eventually(async () => (await ready(DEAD)) === letters.length);
  }

  /** Takes everything off a queue. */
  async function take(queue: string): Promise<GetMessage[]> {
    const all: GetMessage[] = [];
    for (let message = await channel.get(queue, { noAck: true }); message; message = await channel.get(queue, { noAck: true })) {
      delete message.properties.headers?.['x-delivery-count'];
      all.push(message);
    }
    return all;
  }
  const idsOf = (messages: GetMessage[]) => messages.map(({ properties }) => properties.messageId as string);
  const listed = async (line: string): Promise<Record<string, unknown>[]> =>
    (JSON.parse((await tool(`${line} --json`)).printed[0]) as { deadLetters: Record<string, unknown>[] }).deadLetters;

  const many = (count: number): [string][] =>
    Array.from({ length: count }, (_, index) => [`m-${String(index).padStart(3, '0')}`]);

  describe('looking', () => {
    it('says all there is to know on one line each', async () => {
      await buryAll([
        ['m-1', { 'x-attempt': 8, 'x-origin-user': 'ci' }, { appId: 'importer' }],
        ['m-2\u001b[2J', { 'x-api-key': 7 }],
      ]);
      const { done, printed } = await tool('list');
      expect(done).toBe(true);
      expect(printed.join('\n').replace(/ {2,}/g, ' | ').split('\n')).toEqual([
        'users.commands.dead: 2 dead letter(s)',
        '# | ID | OPERATION | STATUS | TENANT | PUBLISHER | TRIES | FIRST FAILED | BYTES | REASON',
        '1 | m-1 | users.add.v1 | NOT_FOUND | key | importer (ci) | 8 | 2026-01-01T00:00:00.000Z | 47 | No such organization.',
        '2 | m-2\\u001b[2J | users.add.v1 | NOT_FOUND | - | - | 1 | 2026-01-01T00:00:00.000Z | 47 | No such organization.',
        'notifications.commands.dead: empty',
      ]);
    });

    it('leaves order, content and properties of hundreds as they were', async () => {
      await buryAll(many(300));
      await tool('list');
      await tool('list --limit 7');
      await tool('show --id m-150');
      expect(await ready(DEAD)).toBe(300);
      const after = await take(DEAD);
      expect(idsOf(after)).toEqual(many(300).flat());
      await buryAll([['m-000']]);
      const [untouched] = await take(DEAD);
      expect(after[0].content).toEqual(untouched.content);
      expect(after[0].properties).toEqual(untouched.properties);
    });

    it('leaves the order when its connection is lost in the middle', async () => {
      await buryAll(many(300));
      const own = await openConnection({ url: broker.url, name: 'doomed' });
      const queue = await OpenedQueue.open(own, DEAD);
      const letters = queue.letters(new AbortController().signal);
      for (let looked = 0; looked < 100; looked++) await letters.next();
      await eventually(() => broker.management.killConnections('doomed'));
      await expect(queue.failed).rejects.toThrow(/closed|lost/i);
      await expect(queue.close()).rejects.toThrow();
      await eventually(async () => (await ready(DEAD)) === 300);
      expect(idsOf(await take(DEAD))).toEqual(many(300).flat());
    });

    it('shows everything of one letter', async () => {
      await buryAll([['m-1'], ['m-2', { 'x-mine': ['a', 1] }, { type: 'users.add.v1' }]]);
      const { printed } = await tool('show --id m-2');
      expect(printed).toHaveLength(1);
      expect(printed[0]).toContain('  id: m-2\n');
      expect(printed[0]).toContain('  type: users.add.v1\n');
      expect(printed[0]).toContain('  x-mine: ["a",1]\n');
      expect(printed[0]).toContain(`Body (JSON)\n${JSON.stringify(BODY, null, 2)}`);
      await expect(tool('show --id m-3')).rejects.toThrow('There is no dead letter with the id "m-3".');
    });

    it('shows a body that is not JSON, or not text, without obeying it', async () => {
      await buryAll([
        ['m-1', {}, {}, Buffer.from('{"a":\u001b[2J')],
        ['m-2', {}, {}, Buffer.from([0xff, 0xfe])],
      ]);
      expect((await tool('show --id m-1')).printed[0]).toMatch(/Body \(not JSON\)\n\{"a":\\u001b\[2J$/);
      expect((await tool('show --id m-2')).printed[0]).toMatch(/Body \(not UTF-8, in Base64\)\n\/\/4=$/);
    });

    it('gives a letter without message_id an id that stays', async () => {
      await buryAll([[undefined], [undefined, { 'x-first-failed-at': 1 }]]);
      const ids = (await listed('list')).map(({ id }) => id as string);
      expect(ids[0]).toMatch(/^sha256:[0-9a-f]{16}$/);
      expect(new Set(ids).size).toBe(2);
      expect((await listed('list')).map(({ id }) => id)).toEqual(ids);
      expect((await listed(`list --id ${ids[1]}`)).map(({ position }) => position)).toEqual([2]);
    });
  });

  describe('conditions', () => {
    it.each([
      ['', 'm-1,m-2,m-3,m-4'],
      ['--status internal', 'm-2'],
      ['--operation users.add.v2', 'm-3'],
      ['--api-key other', 'm-3'],
      ['--id m-1', 'm-1'],
      ['--reason ORGANIZATION', 'm-1,m-3,m-4'],
      ['--since 2026-02-01', 'm-2'],
      ['--until 2026-01-01T00:00:00Z', 'm-1,m-3'],
      ['--since 2025-12-31 --status NOT_FOUND', 'm-1,m-3'],
      ['--limit 2', 'm-1,m-2'],
      ['--service notifications', ''],
      ['--queue users.commands.dead --limit 1', 'm-1'],
    ])('list %s', async (conditions, expected) => {
      await buryAll([
        ['m-1'],
        ['m-2', { 'x-dead-status': 'INTERNAL', 'x-dead-reason': 'Boom', 'x-first-failed-at': Date.parse('2026-02-02') }],
        ['m-3', { 'x-routing-key': 'users.add.v2', 'x-api-key': 'other' }],
        ['m-4', { 'x-first-failed-at': 'soon' }],
      ]);
      expect((await listed(`list ${conditions}`.trim())).map(({ id }) => id).join(',')).toBe(expected);
      expect(await ready(DEAD)).toBe(4);
    });
  });

  describe('replay', () => {
    const unbound = async (work: () => Promise<void>) => {
      await channel.unbindQueue('users.commands', 'retry', 'users.commands');
      try {
        await work();
      } finally {
        await channel.bindQueue('users.commands', 'retry', 'users.commands');
      }
    };

    it('publishes what was published, and takes it off the queue', async () => {
      const properties = { type: 'users.add.v1', appId: 'importer', timestamp: 1_700_000_000, correlationId: 'of the service' };
      await buryAll([
        ['m-0'],
        ['m-1', { 'x-mine': [1, { two: 2 }], 'x-request-id': 'r', 'x-idempotency-key': 'i', 'x-origin-user': 'ci' }, properties],
        ['m-2'],
      ]);
      await tool('list');
      const { done, audited } = await tool('replay --id m-1');
      expect(done).toBe(true);
      expect(audited).toMatchObject([{ id: 'm-1', outcome: 'replayed' }]);

      const [replayed, ...others] = await take('users.commands');
      expect(others).toEqual([]);
      expect(replayed.fields).toMatchObject({ exchange: 'retry', routingKey: 'users.commands' });
      expect(JSON.parse(replayed.content.toString())).toEqual(BODY);
      expect(replayed.properties).toMatchObject({
        messageId: 'm-1',
        contentType: 'application/json',
        type: 'users.add.v1',
        appId: 'importer',
        timestamp: 1_700_000_000,
        deliveryMode: 2,
        correlationId: undefined,
        userId: undefined,
      });
      expect(replayed.properties.headers).toEqual({
        'x-api-key': 'key',
        'x-mine': [1, { two: 2 }],
        'x-request-id': 'r',
        'x-idempotency-key': 'i',
        'x-routing-key': 'users.add.v1',
        'x-origin-user': 'ci',
      });
      expect(idsOf(await take(DEAD))).toEqual(['m-0', 'm-2']);
    });

    it('reaches the consumer; one that fails again is a new letter, and is not replayed for ever', async () => {
      const seen: DeliveryContext[] = [];
      const handlers: UsersHandlers = {
        add: (_, context) => {
          seen.push(context);
          if (context.messageId === 'm-1') throw new ApiError('NOT_FOUND', 'Still not there.');
          return {};
        },
        authenticate: () => ({}),
        exists: () => ({}),
      };
      await buryAll([['m-1', { 'x-attempt': 8 }], ['m-2']]);
      const server: RabbitServer = await startUsersStub(
        { connection: { url: broker.url, name: 'users' }, metrics: new Registry() },
        handlers,
      );
      try {
        await eventually(() => server.check() === undefined);
        expect((await tool('replay --all')).audited.map(({ id }) => id)).toEqual(['m-1', 'm-2']);
        await eventually(() => seen.length === 2);
        expect(seen[0]).toMatchObject({ messageId: 'm-1', apiKey: 'key', attempt: 1, pattern: 'users.add.v1', awaited: false });
        await eventually(async () => (await ready(DEAD)) === 1);
        expect(await listed('list')).toMatchObject([{ id: 'm-1', reason: 'Still not there.', attempts: 1 }]);
      } finally {
        await server.close();
      }
    });

    it('keeps what no queue takes', async () => {
      await unbound(async () => {
        await buryAll([['m-1'], ['m-2']]);
        const { done, audited, noted } = await tool('replay --all');
        expect(done).toBe(false);
        expect(audited).toMatchObject([
          { id: 'm-1', outcome: 'kept', reason: 'no queue is bound for its operation' },
          { id: 'm-2', outcome: 'kept' },
        ]);
        expect(noted).toEqual(['2 kept.']);
        expect(idsOf(await take(DEAD))).toEqual(['m-1', 'm-2']);
      });
    });

    it('keeps what a full queue refuses', async () => {
      await broker.management.limitQueue('users.commands', 1);
      try {
        await buryAll(many(20));
        const { done, audited } = await tool('replay --all');
        expect(done).toBe(false);
        const kept = audited.filter(({ outcome }) => outcome === 'kept');
        expect(kept.length).toBeGreaterThan(0);
        expect(kept[0].reason).toBe('the queue of its operation is full');
        expect(idsOf(await take(DEAD))).toEqual(kept.map(({ id }) => id));
        expect((await take('users.commands')).length).toBe(20 - kept.length);
      } finally {
        // The same policy, for no queue of ours.
        await broker.management.limitQueue('none', 1);
      }
    });

    it('keeps what does not tell its operation, and what tells that of another service', async () => {
      await buryAll([
        ['m-1', { 'x-routing-key': undefined }],
        ['m-2', { 'x-routing-key': 'notifications.add.v1' }],
      ]);
      expect((await tool('replay --all')).audited.map(({ reason }) => reason)).toEqual([
        'nothing tells the operation that it was published for',
        'its operation is none of this service',
      ]);
      expect(await ready(DEAD)).toBe(2);
      expect(await ready('notifications.commands')).toBe(0);
    });

    it('brings an event back to the service that listens to it', async () => {
      const headers = { 'x-api-key': 'key', 'x-routing-key': 'user.added.v1', 'x-dead-status': 'INTERNAL' };
      channel.publish('dead', 'notifications.commands', Buffer.from('{}'), { messageId: 'e-1', headers });
      await channel.waitForConfirms();
      await eventually(async () => (await ready('notifications.commands.dead')) === 1);
      expect((await tool('replay --id e-1')).noted).toEqual(['1 replayed.']);
      expect(idsOf(await take('notifications.commands'))).toEqual(['e-1']);
    });

    it('changes nothing in a dry run', async () => {
      await buryAll([['m-1'], ['m-2', { 'x-routing-key': undefined }]]);
      const { audited, noted, done } = await tool('replay --all --dry-run');
      expect(audited.map(({ outcome }) => outcome)).toEqual(['would be replayed', 'would be kept']);
      expect(noted).toEqual(['1 would be replayed, 1 would be kept.']);
      expect(done).toBe(true);
      expect(await ready('users.commands')).toBe(0);
      expect(idsOf(await take(DEAD))).toEqual(['m-1', 'm-2']);
    });

    it('keeps to its rate', async () => {
      await buryAll(many(6));
      const before = performance.now();
      expect((await tool('replay --all --rate 20')).audited).toHaveLength(6);
      expect(performance.now() - before).toBeGreaterThan(5 * 50 - 5);
    });

    it('stops after the letter in hand when it is interrupted', async () => {
      await buryAll(many(5));
      const stopping = new AbortController();
      const { done, audited, noted } = await tool('replay --all --rate 1', {
        signal: stopping.signal,
        onAudit: () => stopping.abort(),
      });
      expect(done).toBe(false);
      expect(audited).toHaveLength(1);
      expect(noted).toContain('Interrupted; the rest is where it was.');
      expect(idsOf(await take(DEAD))).toEqual(many(5).flat().slice(1));
      expect(await ready('users.commands')).toBe(1);
    });

    it('leaves the queue to one at a time, so that nothing is replayed twice', async () => {
      await buryAll(many(5));
      const stopping = new AbortController();
      let first: Promise<Said> | undefined;
      await new Promise<void>((resolve) => {
        first = tool('replay --all --rate 1', { signal: stopping.signal, onAudit: resolve });
      });
      await expect(tool('replay --all')).rejects.toThrow(`${DEAD}: somebody else is at work on it.`);
      await expect(tool('list')).rejects.toThrow('Try again when they are done.');
      stopping.abort();
      const before = (await first)?.audited.length ?? 0;
      expect((await tool('replay --all')).audited).toHaveLength(5 - before);
      expect(idsOf(await take('users.commands'))).toEqual(many(5).flat());
    });
  });

  describe('drop', () => {
    it('deletes what matches, and nothing else', async () => {
      await buryAll([['m-1'], ['m-2', { 'x-dead-status': 'INTERNAL' }], ['m-3']]);
      const { audited, noted, done } = await tool('drop --status NOT_FOUND --yes');
      expect(done).toBe(true);
      expect(audited.map(({ id, outcome, action }) => [id, outcome, action])).toEqual([
        ['m-1', 'dropped', 'drop'],
        ['m-3', 'dropped', 'drop'],
      ]);
      expect(noted).toEqual(['2 dropped.']);
      expect(await ready('users.commands')).toBe(0);
      expect(idsOf(await take(DEAD))).toEqual(['m-2']);
    });

    it('deletes for good however many they are, and keeps the order of the others', async () => {
      await buryAll(many(900).map(([id], index) => [id, { 'x-api-key': index % 3 === 0 ? 'other' : 'key' }]));
      expect((await tool('drop --api-key key --yes')).audited).toHaveLength(600);
      expect(await ready(DEAD)).toBe(300);
      expect(idsOf(await take(DEAD))).toEqual(
        many(900)
          .flat()
          .filter((_, index) => index % 3 === 0),
      );
    });

    it('deletes nothing in a dry run', async () => {
      await buryAll([['m-1']]);
      expect((await tool('drop --all --dry-run')).audited).toMatchObject([{ outcome: 'would be dropped' }]);
      expect(await ready(DEAD)).toBe(1);
    });

    it('says who did what to which letter, and nothing of its body', async () => {
      await buryAll([['m-1']]);
      const { audited } = await tool('drop --id m-1 --yes');
      expect(audited).toEqual([
        {
          time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
          operator: expect.any(String) as string,
          action: 'drop',
          queue: DEAD,
          id: 'm-1',
          operation: 'users.add.v1',
          apiKey: 'key',
          outcome: 'dropped',
        },
      ]);
    });
  });

  describe('what the broker gave up by itself', () => {
    /** Lets a consumer die with the message until the broker has had enough. */
    async function crash(options: Options.Publish, exchange = 'commands', routingKey = 'users.add.v1') {
      channel.publish(exchange, routingKey, Buffer.from(JSON.stringify(BODY)), { persistent: true, ...options });
      await channel.waitForConfirms();
      await eventually(async () => {
        if ((await ready(DEAD)) > 0) return true;
        const consumer = await model.createChannel();
        await consumer.get('users.commands');
        await consumer.close();
        return false;
      });
    }

    it('crashed its consumer; is replayed to where it came from', async () => {
      const account = new URL(broker.url).username;
      const headers = { 'x-api-key': 'key', 'x-routing-key': 'forged', 'x-attempt': 99, CC: ['elsewhere'] };
      await crash({ messageId: 'm-1', userId: account, appId: 'importer', correlationId: 'c', replyTo: 'r', headers });
      const [letter] = await listed('list --status CRASHED --since 1m');
      expect(letter).toMatchObject({
        id: 'm-1',
        operation: 'users.add.v1',
        reason: 'crashed its consumer, until the broker gave it up',
        publisher: `importer (${account})`,
        attempts: 1,
      });
      expect((await tool('replay --all')).done).toBe(true);
      const [{ fields, properties }] = await take('users.commands');
      expect(fields).toMatchObject({ exchange: 'retry', routingKey: 'users.commands' });
      expect(properties).toMatchObject({ messageId: 'm-1', replyTo: 'r', userId: undefined });
      expect(properties.headers).toEqual({
        'x-api-key': 'key',
        'x-routing-key': 'users.add.v1',
        'x-origin-user': account,
        'x-correlation-id': 'c',
      });
      expect(await ready(DEAD)).toBe(0);
    });

    it('crashed its consumer at a later try', async () => {
      const ours = {
        'x-routing-key': 'users.add.v1',
        'x-attempt': 3,
        'x-first-failed-at': 1_750_000_000_000,
        'x-origin-user': 'ci',
      };
      await crash({ messageId: 'm-1', headers: { 'x-api-key': 'key', ...ours } }, 'retry', 'users.commands');
      expect(await listed('list')).toMatchObject([
        { operation: 'users.add.v1', attempts: 3, publisher: '(ci)', firstFailedAt: new Date(1_750_000_000_000).toISOString() },
      ]);
    });

    it('stays when its caller was promised that nothing happens any more', async () => {
      await crash({ messageId: 'm-1', replyTo: 'r', headers: { 'x-api-key': 'key', 'x-deadline': Date.now() - 1 } });
      const { audited } = await tool('replay --all');
      expect(audited).toMatchObject([{ outcome: 'kept', reason: expect.stringContaining('promised') as string }]);
      expect(await ready('users.commands')).toBe(0);
      expect(await ready(DEAD)).toBe(1);
    });

    it('expired in its queue', async () => {
      channel.publish('commands', 'users.add.v1', Buffer.from('{}'), { persistent: true, messageId: 'm-1', expiration: 1 });
      await eventually(async () => (await ready(DEAD)) > 0);
      expect(await listed('list')).toMatchObject([{ id: 'm-1', status: 'EXPIRED', operation: 'users.add.v1' }]);
      await tool('replay --all');
      expect((await take('users.commands'))[0].properties).toMatchObject({ messageId: 'm-1', expiration: undefined });
    });
  });

  describe('bounds', () => {
    it('says when there was not enough time', async () => {
      await buryAll(many(5));
      const { done, noted } = await tool('replay --all', { bounds: { ...BOUNDS, milliseconds: 0 } });
      expect(done).toBe(false);
      expect(noted).toContain(`${DEAD}: it took too long: run it again for the rest.`);
      expect(idsOf(await take(DEAD))).toEqual(many(5).flat());
    });

    it('says when there are more than it holds, and still works through what it removes', async () => {
      await buryAll(many(20));
      const bounds = { ...BOUNDS, held: 5 };
      const look = await tool('list', { bounds });
      expect(look.noted).toEqual([`${DEAD}: only the first 5 were looked at.`]);
      expect(look.done).toBe(false);
      expect((await tool('drop --all --yes', { bounds })).audited).toHaveLength(20);
    });
  });
});
