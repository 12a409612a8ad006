import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { aDelivery } from '../../test/a-delivery';
import type { Delivery } from '../delivery/delivery';
import { TransportMetrics } from '../metrics';
import { LANES, type ExchangeName } from '../topology/topology';
import { Turns } from './turns';

const PATTERN = { commands: 'notifications.add.v1', queries: 'notifications.inbox.v1' };
const HEAVY = { commands: 1024 * 1024, queries: 4 * 1024 * 1024 };

/** The delivery that has run longest ends first. */
class Bench {
  readonly started: string[] = [];
  private readonly running: { delivery: Delivery; end(): void }[] = [];
  private readonly turns: Turns;

  constructor(
    private readonly kind: 'commands' | 'queries',
    places: number,
  ) {
    this.turns = new Turns(kind, TransportMetrics.of(new Registry()), places);
  }

  /** @param name of the account in a lane, of the key in the calls */
  enter(exchange: ExchangeName, name: string, times = 1, bytes = 100): void {
    for (let time = 0; time < times; time++) {
      const delivery = deliveryOf(this.kind, exchange, name, bytes);
      const work = () => {
        this.started.push(name);
        return new Promise<void>((end) => this.running.push({ delivery, end }));
      };
      void this.turns.run(delivery, work);
    }
  }

  async finish(times: number, answerBytes = 2): Promise<void> {
    for (let time = 0; time < times; time++) {
      const one = this.running.shift();
      if (!one) throw new Error('nothing runs');
      one.delivery.replyBytes = answerBytes;
      one.end();
      // Turns go on in a later microtask.
      await new Promise(setImmediate);
    }
  }

  count(name: string): number {
    return this.started.filter((one) => one === name).length;
  }
}

function deliveryOf(kind: 'commands' | 'queries', exchange: ExchangeName, name: string, bytes: number): Delivery {
  const from = exchange === 'calls' ? { apiKey: name, userId: 'gateway' } : { apiKey: 'key', userId: name };
  return aDelivery({ ...from, pattern: PATTERN[kind] }, { queue: { kind, exchange }, content: Buffer.alloc(bytes) });
}

describe('lanes', () => {
  beforeAll(() => Logger.overrideLogger(false));
  // Work of lanes beside calls rests for as long as it took: here for no time.
  beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate'] }));
  afterEach(() => void jest.useRealTimers());

  it('let their accounts take turns', async () => {
    const bench = new Bench('commands', 2);
    bench.enter('commands.1', 'greedy', 100);
    bench.enter('commands.1', 'modest', 5);
    await bench.finish(12);
    expect(bench.count('modest')).toBe(5);
  });

  it('take turns, however many accounts publish in one of them', async () => {
    const bench = new Bench('commands', 1);
    for (let account = 0; account < 30; account++) bench.enter('commands.1', `one of many ${account}`, 5);
    bench.enter('commands.2', 'alone', 20);
    await bench.finish(40);
    expect(bench.count('alone')).toBe(20);
  });

  it.each(['commands', 'queries'] as const)('leave three quarters of the turns to calls: %s', async (kind) => {
    const bench = new Bench(kind, 1);
    for (const lane of LANES) bench.enter(lane, lane, 200);
    bench.enter('calls', 'key', 400);
    await bench.finish(320);
    expect(bench.count('key')).toBeGreaterThanOrEqual(235);
    for (const lane of LANES) expect([lane, bench.count(lane)]).toEqual([lane, expect.closeTo(20, -1)]);
  });

  it.each([
    ['commands', 256, 32],
    ['commands', 8, 2],
    ['queries', 7, 2],
  ] as const)('leave room for calls for a second after one: %s, %d places', async (kind, places, most) => {
    const bench = new Bench(kind, places);
    // From now on the cost of its light queries is known.
    bench.enter('commands.1', 'light');
    bench.enter('calls', 'key');
    await bench.finish(2);
    bench.enter('commands.1', 'light', places);
    expect(bench.count('light')).toBe(1 + most);
    jest.advanceTimersByTime(1001);
    await bench.finish(1);
    expect(bench.count('light')).toBe(1 + places);
  });

  it.each(['commands', 'queries'] as const)('run one heavy piece at a time beside calls: %s', async (kind) => {
    const bench = new Bench(kind, 64);
    bench.enter('commands.1', 'heavy', 1, HEAVY.commands);
    await bench.finish(1, HEAVY.queries);
    bench.enter('calls', 'key');
    bench.enter('commands.1', 'heavy', 4, HEAVY.commands);
    expect(bench.count('heavy')).toBe(1 + 1);
  });
});
