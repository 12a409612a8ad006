import { Registry } from 'prom-client';
import { ApiError } from '@app/contracts/error';
import { fillQueue } from '@app/testing/broker/broker';
import { AGAIN, BODY, CRASHED, DEAD, deadLetterBox, many, REFUSED, type Said } from '@app/testing/broker/dead-letter-box';
import { eventually } from '@app/testing/eventually';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import type { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import type { RabbitServer } from '@app/rabbitmq/server/rabbit.server';

describe('replaying dead letters', () => {
  const box = deadLetterBox();

  const unbound = async (work: () => Promise<void>) => {
    await box.channel.unbindQueue(AGAIN, 'retry', AGAIN);
    try {
      await work();
    } finally {
      await box.channel.bindQueue(AGAIN, 'retry', AGAIN);
    }
  };

  it('publishes the original message, and removes the dead letter', async () => {
    const properties = { type: 'users.add.v1', appId: 'importer', timestamp: 1_700_000_000, correlationId: 'of the service' };
    await box.bury([
      ['m-0'],
      [
        'm-1',
        {
          'x-mine': [1, { two: 2 }],
          'x-request-id': 'r',
          'x-idempotency-key': 'i',
          'x-origin-user': 'ci',
          'x-lane': 'commands.2',
        },
        properties,
      ],
      ['m-2'],
    ]);
    await box.tool('list');
    const { done, audited } = await box.tool('replay --id m-1');
    expect(done).toBe(true);
    expect(audited).toMatchObject([{ id: 'm-1', outcome: 'replayed' }]);

    const [replayed, ...others] = await box.take(AGAIN);
    expect(others).toEqual([]);
    expect(replayed.fields).toMatchObject({ exchange: 'retry', routingKey: AGAIN });
    expect(JSON.parse(replayed.content.toString())).toEqual(BODY);
    expect(replayed.properties).toMatchObject({
      messageId: 'm-1',
      contentType: 'application/json',
      type: 'users.add.v1',
      appId: 'importer',
      timestamp: 1_700_000_000,
      deliveryMode: 2,
      correlationId: undefined,
      userId: box.account,
    });
    expect(replayed.properties.headers).toEqual({
      'x-api-key': 'key',
      'x-mine': [1, { two: 2 }],
      'x-request-id': 'r',
      'x-idempotency-key': 'i',
      'x-routing-key': 'users.add.v1',
      'x-lane': 'commands.2',
      'x-origin-user': 'ci',
    });
    expect(await box.takeIds(DEAD)).toEqual(['m-0', 'm-2']);
  });

  it('reaches the consumer; a message that fails again is a new dead letter, and is not replayed for ever', async () => {
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
    await box.bury([['m-1', { 'x-attempt': 8 }], ['m-2']]);
    const server: RabbitServer = await startUsersStub(
      { connection: { url: box.broker.url, name: 'users' }, metrics: new Registry() },
      handlers,
    );
    try {
      await eventually(() => server.check() === undefined);
      expect((await box.tool('replay --all')).audited.map(({ id }) => id)).toEqual(['m-1', 'm-2']);
      await eventually(() => seen.length === 2);
      expect(seen[0]).toMatchObject({ messageId: 'm-1', apiKey: 'key', attempt: 1, pattern: 'users.add.v1', awaited: false });
      await eventually(async () => (await box.ready(REFUSED)) === 1);
      expect(await box.listed('list')).toMatchObject([
        { queue: REFUSED, id: 'm-1', origin: 'service', reason: 'Still not there.', attempts: 1 },
      ]);
    } finally {
      await server.close();
    }
  });

  it('keeps a dead letter that no queue is bound for', async () => {
    await unbound(async () => {
      await box.bury([['m-1'], ['m-2']]);
      const { done, audited, noted } = await box.tool('replay --all');
      expect(done).toBe(false);
      expect(audited).toMatchObject([
        { id: 'm-1', outcome: 'kept', reason: 'no queue is bound for its operation' },
        { id: 'm-2', outcome: 'kept' },
      ]);
      expect(noted).toEqual(['2 kept.']);
      expect(await box.takeIds(DEAD)).toEqual(['m-1', 'm-2']);
    });
  });

  it('keeps a dead letter that a full queue refuses', async () => {
    await fillQueue(box.broker, AGAIN);
    try {
      await box.bury(many(20));
      const filled = await box.ready(AGAIN);
      const { done, audited } = await box.tool('replay --all');
      expect(done).toBe(false);
      const kept = audited.filter(({ outcome }) => outcome === 'kept');
      expect(kept.length).toBeGreaterThan(0);
      expect(kept[0].reason).toBe('the queue of its operation is full');
      expect(await box.takeIds(DEAD)).toEqual(kept.map(({ id }) => id));
      expect((await box.take(AGAIN)).length).toBe(filled + 20 - kept.length);
    } finally {
      // Points the same policy to a queue that does not exist.
      await box.broker.management.limitQueue('none', 1);
    }
  });

  it('keeps a dead letter without an operation, or with an operation of another service', async () => {
    await box.bury([
      ['m-1', { 'x-routing-key': undefined }],
      ['m-2', { 'x-routing-key': 'notifications.add.v1' }],
    ]);
    expect((await box.tool('replay --all')).audited.map(({ reason }) => reason)).toEqual([
      'its operation is unknown',
      'its operation does not belong to this service',
    ]);
    expect(await box.ready(DEAD)).toBe(2);
    expect(await box.ready('notifications.again')).toBe(0);
  });

  it('replays refused and crashed commands; a waiting caller gets the reply', async () => {
    await box.bury([['m-1']], REFUSED);
    await box.bury([['m-2', { 'x-correlation-id': 'c' }, { replyTo: 'r', correlationId: 'of the service' }]], CRASHED);
    expect((await box.tool('replay --all')).audited.map(({ id, queue }) => [id, queue])).toEqual([
      ['m-2', CRASHED],
      ['m-1', REFUSED],
    ]);
    const [crashed, refused] = await box.take(AGAIN);
    expect(crashed.properties).toMatchObject({ replyTo: 'r', headers: { 'x-correlation-id': 'c', 'x-lane': 'commands' } });
    expect(refused.properties.messageId).toBe('m-1');
  });

  it('keeps a command whose waiting caller had a deadline that has passed', async () => {
    await box.bury([['m-1', { 'x-deadline': Date.now() - 1 }, { replyTo: 'r' }]], CRASHED);
    expect((await box.tool('replay --all')).audited).toMatchObject([
      { outcome: 'kept', reason: 'its caller waited, and relies on nothing being executed after the deadline' },
    ]);
  });

  it('keeps a stub, and reports the size of the original', async () => {
    await box.bury([['m-1', { 'x-dead-size': 2000, 'x-dead-sha256': 'ab'.repeat(32) }, {}, Buffer.from('not JSON')]], REFUSED);
    const { audited } = await box.tool('replay --all');
    expect(audited[0].reason).toBe(
      `only the first 8 of its 2000 bytes were kept (SHA-256 ${'ab'.repeat(32)}): its publisher must publish it again`,
    );
    expect(await box.ready(AGAIN)).toBe(0);
    expect(await box.takeIds(REFUSED)).toEqual(['m-1']);
  });

  it('says of a stub with its whole body that it cannot be read', async () => {
    await box.bury([['m-1', { 'x-dead-size': 8, 'x-dead-sha256': 'ab'.repeat(32) }, {}, Buffer.from('not JSON')]], REFUSED);
    const { audited } = await box.tool('replay --all');
    expect(audited[0].reason).toBe(
      'its body or one of its headers cannot be read, as its reason says: its publisher must publish it again',
    );
  });

  it('changes nothing in a dry run', async () => {
    await box.bury([['m-1'], ['m-2', { 'x-routing-key': undefined }]]);
    const { audited, noted, done } = await box.tool('replay --all --dry-run');
    expect(audited.map(({ outcome }) => outcome)).toEqual(['would be replayed', 'would be kept']);
    expect(noted).toEqual(['1 would be replayed, 1 would be kept.']);
    expect(done).toBe(true);
    expect(await box.ready(AGAIN)).toBe(0);
    expect(await box.takeIds(DEAD)).toEqual(['m-1', 'm-2']);
  });

  it('respects its rate', async () => {
    await box.bury(many(6));
    const before = performance.now();
    expect((await box.tool('replay --all --rate 20')).audited).toHaveLength(6);
    expect(performance.now() - before).toBeGreaterThan(5 * 50 - 5);
  });

  it('stops after the current dead letter when it is interrupted', async () => {
    await box.bury(many(5));
    const stopping = new AbortController();
    const { done, audited, noted } = await box.tool('replay --all --rate 1', {
      signal: stopping.signal,
      onAudit: () => stopping.abort(),
    });
    expect(done).toBe(false);
    expect(audited).toHaveLength(1);
    expect(noted).toContain('Interrupted; the rest is unchanged.');
    expect(await box.takeIds(DEAD)).toEqual(many(5).flat().slice(1));
    expect(await box.ready(AGAIN)).toBe(1);
  });

  it('allows one run at a time on a queue, so that no message is replayed twice', async () => {
    await box.bury(many(5));
    const stopping = new AbortController();
    let first: Promise<Said> | undefined;
    await new Promise<void>((resolve) => {
      first = box.tool('replay --all --rate 1', { signal: stopping.signal, onAudit: resolve });
    });
    await expect(box.tool('replay --all')).rejects.toThrow(`${DEAD}: another run is working on it.`);
    await expect(box.tool('list')).rejects.toThrow('Try again later.');
    stopping.abort();
    const before = (await first)?.audited.length ?? 0;
    expect((await box.tool('replay --all')).audited).toHaveLength(5 - before);
    expect(await box.takeIds(AGAIN)).toEqual(many(5).flat());
  });
});
