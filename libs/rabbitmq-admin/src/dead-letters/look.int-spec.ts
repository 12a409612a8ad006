import { Registry } from 'prom-client';
import { AddUsers } from '@app/contracts/users.add';
import { BODY, CRASHED, DEAD, deadLetterBox, many, REFUSED } from '@app/testing/broker/dead-letter-box';
import { eventually } from '@app/testing/eventually';
import { startUsersStub } from '@app/testing/system/users-stub';
import { openConnection } from '@app/amqp/connection/open-connection';
import { commandMessage } from '@app/amqp/messages/command-format';
import { callQueue, suspectQueue } from '@app/rabbitmq/topology/topology';
import { BOUNDS, OpenedQueue } from './opened-queue';

describe('looking at dead letters', () => {
  const box = deadLetterBox();

  it('prints one line for each dead letter, and one line for all empty queues', async () => {
    await box.bury([
      ['m-1', { 'x-attempt': 8, 'x-origin-user': 'ci', 'x-request-id': 'r-1' }, { appId: 'importer' }],
      ['m-2\u001b[2J', { 'x-api-key': 7, 'x-origin-user': undefined }, { appId: '9  gateway' }],
    ]);
    await box.bury([['m-3', { 'x-dead-status': 'INTERNAL' }]], 'notifications.commands.crashed');
    const { done, printed } = await box.tool('list');
    expect(done).toBe(true);
    const found = 'users.add.v1 | NOT_FOUND';
    const at = '2026-01-01T00:00:00.000Z';
    expect(printed.join('\n').replace(/ {2,}/g, ' | ').split('\n')).toEqual([
      'users.commands.dead: 2 dead letters',
      '# | ID | OPERATION | STATUS | TENANT | PUBLISHER | APP | TRIES | FIRST FAILED | REQUEST | BYTES | REASON',
      `1 | m-1 | ${found} | key | ci | importer | 8 | ${at} | r-1 | 47 | No such organization.`,
      `2 | m-2\\u001b[2J | ${found} | - | none | "9 | gateway" | 1 | ${at} | - | 47 | No such organization.`,
      'notifications.commands.crashed: 1 dead letter',
      '# | ID | OPERATION | STATUS | TENANT | PUBLISHER | APP | TRIES | FIRST FAILED | REQUEST | BYTES | REASON',
      `1 | m-3 | users.add.v1 | CRASHED | key | none | - | 1 | ${at} | - | 47 | crashed its consumers too often`,
      'Empty: users.commands.crashed, users.commands.refused, notifications.commands.dead, notifications.commands.refused',
    ]);
  });

  it('shows commands that shared a message one by one', async () => {
    const [calls, suspects] = [callQueue('users'), suspectQueue('users')];
    const bodies = ['a', 'b'].map((organizationId) => JSON.stringify({ ...BODY, organizationId }));
    const requests = ['a', 'b'].map((id, index) => ({
      operation: AddUsers,
      body: Buffer.from(bodies[index]),
      options: { apiKey: `tenant of ${id}`, requestId: `request of ${id}`, timeoutMs: 60_000, messageId: id },
      correlationId: id,
      deadline: performance.now() + 60_000,
    }));
    const { body, properties } = commandMessage(requests, 'both', { appId: 'gateway', userId: box.account }, 'replies');
    box.channel.publish('calls', AddUsers.pattern, body, properties);
    await box.channel.waitForConfirms();
    /** The remains of a killed consumer. */
    const crash = async (queue: string, deliveries: number) => {
      const victim = await box.broker.model.createChannel();
      let delivered = 0;
      await victim.consume(queue, () => delivered++);
      await eventually(() => delivered >= deliveries);
      await victim.close();
    };
    for (let time = 0; time < 2; time++) await crash(calls, 1);
    const handlers = { add: () => new Promise(() => undefined), authenticate: () => ({}), exists: () => ({}) };
    const server = await startUsersStub(
      { connection: { url: box.broker.url, name: 'users' }, metrics: new Registry(), drainTimeoutMs: 0, crashPauseMs: 0 },
      handlers,
    );
    // The other one is with the handler.
    await eventually(async () => (await box.ready(suspects)) === 1);
    await server.close();
    await eventually(async () => {
      await crash(suspects, await box.ready(suspects));
      return (await box.ready(CRASHED)) === 2;
    });
    const letters = (await box.listed('list')).toSorted((one, other) => String(one.id).localeCompare(String(other.id)));
    expect(letters).toMatchObject(
      ['a', 'b'].map((id, index) => ({
        queue: CRASHED,
        id,
        operation: AddUsers.pattern,
        status: 'CRASHED',
        apiKey: `tenant of ${id}`,
        publisher: box.account,
        app: 'gateway',
        requestId: `request of ${id}`,
        size: bodies[index].length,
      })),
    );
    const [shown] = (await box.tool('show --id b')).printed;
    expect(shown).toContain(`Body (JSON)\n${JSON.stringify(JSON.parse(bodies[1]), null, 2)}`);
    expect(shown).toContain(`  type: ${AddUsers.pattern}\n`);
  });

  it('changes neither order, content nor properties of hundreds', async () => {
    await box.bury(many(300));
    await box.tool('list');
    await box.tool('list --limit 7');
    await box.tool('show --id m-150');
    expect(await box.ready(DEAD)).toBe(300);
    const after = await box.take(DEAD);
    expect(after.map(({ properties }) => properties.messageId as string)).toEqual(many(300).flat());
    await box.bury([['m-000']]);
    const [untouched] = await box.take(DEAD);
    expect(after[0].content).toEqual(untouched.content);
    expect(after[0].properties).toEqual(untouched.properties);
  });

  it('keeps the order when its connection is lost in the middle', async () => {
    await box.bury(many(300));
    const own = await openConnection({ url: box.broker.url, name: 'doomed' });
    const queue = await OpenedQueue.open(own, DEAD);
    const letters = queue.letters(new AbortController().signal);
    for (let looked = 0; looked < 100; looked++) await letters.next();
    await eventually(() => box.broker.management.killConnections('doomed'));
    await expect(queue.failed).rejects.toThrow(/closed|lost/i);
    await expect(queue.close()).rejects.toThrow();
    await eventually(async () => (await box.ready(DEAD)) === 300);
    expect(await box.takeIds(DEAD)).toEqual(many(300).flat());
  });

  it('shows all data of one dead letter', async () => {
    await box.bury([['m-1'], ['m-2', { 'x-mine': ['a', 1] }, { type: 'users.add.v1' }]]);
    const { printed, audited } = await box.tool('show --id m-2');
    expect(audited).toMatchObject([{ action: 'show', queue: DEAD, id: 'm-2', outcome: 'shown' }]);
    expect(printed).toHaveLength(1);
    expect(printed[0]).toContain('  id: m-2\n');
    expect(printed[0]).toContain('  type: users.add.v1\n');
    expect(printed[0]).toContain('  x-mine: ["a",1]\n');
    expect(printed[0]).toContain(`Body (JSON)\n${JSON.stringify(BODY, null, 2)}`);
    await expect(box.tool('show --id m-3')).rejects.toThrow('There is no dead letter with the id "m-3".');
  });

  it('shows a body that is not JSON or not text, with control characters escaped', async () => {
    await box.bury([
      ['m-1', {}, {}, Buffer.from('{"a":\u001b[2J')],
      ['m-2', {}, {}, Buffer.from([0xff, 0xfe])],
    ]);
    expect((await box.tool('show --id m-1')).printed[0]).toMatch(/Body \(not JSON\)\n\{"a":\\u001b\[2J$/);
    expect((await box.tool('show --id m-2')).printed[0]).toMatch(/Body \(not UTF-8, in Base64\)\n\/\/4=$/);
  });

  it('shows the kept part and the size of a malformed body', async () => {
    const headers = { 'x-dead-size': 5_000_000, 'x-dead-sha256': 'ab'.repeat(32), 'x-dead-status': 'INVALID_ARGUMENT' };
    await box.bury([['m-1', headers, {}, Buffer.from('{"a":')]], REFUSED);
    expect(await box.listed('list')).toMatchObject([{ size: 5_000_000, stub: true, sha256: 'ab'.repeat(32) }]);
    const [shown] = (await box.tool('show --id m-1')).printed;
    expect(shown).toContain('  size: 5000000\n');
    expect(shown).toContain(`  sha256: ${'ab'.repeat(32)}\n`);
    expect(shown).toMatch(/Body \(the first 5 of its 5000000 bytes; not JSON\)\n\{"a":$/);
  });

  it('gives a dead letter without message_id a stable id', async () => {
    await box.bury([[undefined], [undefined, { 'x-first-failed-at': 1 }]]);
    const ids = (await box.listed('list')).map(({ id }) => id as string);
    expect(ids[0]).toMatch(/^sha256:[0-9a-f]{16}$/);
    expect(new Set(ids).size).toBe(2);
    expect((await box.listed('list')).map(({ id }) => id)).toEqual(ids);
    expect((await box.listed(`list --id ${ids[1]}`)).map(({ position }) => position)).toEqual([2]);
  });

  describe('conditions', () => {
    it.each([
      ['', 'm-1,m-2,m-3,m-4'],
      ['--status internal', 'm-2'],
      ['--operation users.add.v2', 'm-3'],
      ['--api-key other', 'm-3'],
      ['--id m-1', 'm-1'],
      ['--request-id r-3', 'm-3'],
      ['--reason ORGANIZATION', 'm-1,m-3,m-4'],
      ['--since 2026-02-01', 'm-2'],
      ['--until 2026-01-01T00:00:00Z', 'm-1,m-3'],
      ['--since 2025-12-31 --status NOT_FOUND', 'm-1,m-3'],
      ['--limit 2', 'm-1,m-2'],
      ['--service notifications', ''],
      ['--queue users.commands.dead --limit 1', 'm-1'],
      ['--kind refused', ''],
      ['--service users --kind dead', 'm-1,m-2,m-3,m-4'],
      ['--publisher ci', 'm-2'],
    ])('list %s', async (conditions, expected) => {
      await box.bury([
        ['m-1'],
        [
          'm-2',
          {
            'x-dead-status': 'INTERNAL',
            'x-dead-reason': 'Boom',
            'x-first-failed-at': Date.parse('2026-02-02'),
            'x-origin-user': 'ci',
          },
        ],
        ['m-3', { 'x-routing-key': 'users.add.v2', 'x-api-key': 'other', 'x-request-id': 'r-3' }],
        ['m-4', { 'x-first-failed-at': 'soon' }],
      ]);
      expect((await box.listed(`list ${conditions}`.trim())).map(({ id }) => id).join(',')).toBe(expected);
      expect(await box.ready(DEAD)).toBe(4);
    });
  });

  describe('bounds', () => {
    it('reports when there was not enough time', async () => {
      await box.bury(many(5));
      const { done, noted } = await box.tool('replay --all', { bounds: { ...BOUNDS, milliseconds: 0 } });
      expect(done).toBe(false);
      expect(noted).toContain(`${DEAD}: it took too long: run it again for the rest.`);
      expect(await box.takeIds(DEAD)).toEqual(many(5).flat());
    });

    it('reaches a letter behind ten thousand that stay', async () => {
      await box.bury(Array.from({ length: 10_001 }, (_, index) => [`m-${index}`]));
      const { done, audited } = await box.tool('drop --id m-10000 --yes');
      expect([done, audited.map(({ id }) => id)]).toEqual([true, ['m-10000']]);
      expect(await box.ready(DEAD)).toBe(10_000);
    });

    it('reports when there are more than it can hold; removed ones do not count', async () => {
      await box.bury(many(20));
      const bounds = { ...BOUNDS, held: 5 };
      const look = await box.tool('list', { bounds });
      expect(look.noted).toEqual([`${DEAD}: only the first 5 were read.`]);
      expect(look.done).toBe(false);
      expect((await box.tool('drop --all --yes', { bounds })).audited).toHaveLength(20);
    });
  });
});
