import { EventEmitter } from 'node:events';
import { Logger } from '@nestjs/common';
import type { Channel } from 'amqplib';
import { Registry } from 'prom-client';
import { RabbitConnection } from '@app/amqp/connection/connection';
import { eventually } from '@app/testing/eventually';
import { metricValue } from '@app/testing/metric-value';
import { aDelivery } from '../../test/a-delivery';
import { TransportMetrics } from '../metrics';
import { observe } from '../observe';
import type { Decision } from './ack-policy';
import { LetterTurns } from './letter-turns';
import { HeldDeliveries } from './held-deliveries';
import { Settlement } from './settlement';

const MINUTE_MS = 60_000;
const error = { status: 'INVALID_ARGUMENT', message: 'Not JSON.' } as const;
const REFUSED = { do: 'refuseThenAck', error, stub: true } as const;
const DEAD = { do: 'deadThenAck', error } as const;

/** The connection is never started: nothing can be published. */
describe(Settlement.name, () => {
  let registry: Registry;
  let settlement: Settlement;
  let acked: number;
  let lines: { msg: string; publisher?: string; outcome?: string }[];
  let passedMs: number;

  const value = (name: string) => metricValue(registry, name);
  const settle = (decision: Exclude<Decision, { do: 'hold' }>) => {
    const acks = { channel: new EventEmitter() as Channel, ack: () => void acked++ };
    const from = { appId: 'a name of its own', userId: 'importer' };
    const delivery = aDelivery(from, { content: Buffer.alloc(5000, 'x'), acks });
    const settled = settlement.settle(delivery, decision, delivery.context.pattern);
    return { settled, message: delivery.message };
  };
  /** Two further attempts to publish it. */
  const afterMore = async () => {
    const before = lines.length;
    await eventually(() => lines.length >= before + 2);
  };

  beforeEach(() => {
    [passedMs, acked, lines] = [0, 0, []];
    jest.spyOn(performance, 'now').mockImplementation(() => passedMs);
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: (typeof lines)[number]) => void lines.push(line));
    registry = new Registry();
    const metrics = TransportMetrics.of(registry);
    const connection = new RabbitConnection({ url: 'amqp://users:secret@127.0.0.1:1', name: 'test' }, observe(metrics));
    const heldDeliveries = new HeldDeliveries(new Map(), metrics);
    const letterTurns = new LetterTurns(metrics);
    settlement = new Settlement(connection, { service: 'users', confirmReplies: false, metrics, heldDeliveries, letterTurns });
  });
  afterEach(async () => {
    settlement.stopWaiting();
    await settlement.close();
    jest.restoreAllMocks();
  });

  it('tells of a call that came too late, and of no other', async () => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
    await settle({ do: 'ack', because: 'acked' }).settled;
    await settle({ do: 'ack', because: 'expired' }).settled;
    jest.advanceTimersByTime(MINUTE_MS);
    jest.useRealTimers();
    expect(lines).toEqual([expect.objectContaining({ msg: expect.stringMatching('after their deadline') as string, calls: 1 })]);
  });

  it('holds a refused command for 5 minutes while its letter cannot be published, then drops and counts it', async () => {
    const { settled, message } = settle(REFUSED);
    await eventually(() => lines.length > 0);
    expect(message.content).toHaveLength(0);
    expect(await value('rabbitmq_letters_held')).toBe(1);
    passedMs = 5 * MINUTE_MS;
    await afterMore();
    expect([acked, await value('rabbitmq_letters_dropped_total')]).toEqual([0, 0]);
    passedMs = 5 * MINUTE_MS + 1;
    await settled;
    expect([acked, await value('rabbitmq_letters_dropped_total'), await value('rabbitmq_letters_held')]).toEqual([1, 1, 0]);
    expect((await registry.getSingleMetric('rabbitmq_deliveries_total')!.get()).values).toMatchObject([
      { value: 1, labels: { outcome: 'refused_dropped', status: 'INVALID_ARGUMENT' } },
    ]);
  });

  it('keeps no body that cannot be read while its letter waits for its turn', async () => {
    const [, , { message }] = [settle(REFUSED), settle(REFUSED), settle(REFUSED)];
    await new Promise(setImmediate);
    expect([await value('rabbitmq_deliveries_waiting'), message.content.length]).toEqual([1, 0]);
  });

  it('holds what this system failed to do without limit, and names the account', async () => {
    const { settled } = settle(DEAD);
    await eventually(() => lines.length > 0);
    passedMs = 60 * MINUTE_MS;
    await afterMore();
    expect([acked, await value('rabbitmq_letters_held')]).toEqual([0, 1]);
    expect(lines[0]).toMatchObject({ msg: 'publishing again failed', publisher: 'importer', outcome: 'not written' });
    settlement.stopWaiting();
    await settled;
    expect(acked).toBe(0);
  });
});
