import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { TransportMetrics } from '../metrics';
import type { ConsumedQueue } from '../topology/consumed-queues';
import { HeldDeliveries } from './held-deliveries';

const QUEUE: ConsumedQueue = { name: 'users.commands.0', kind: 'commands', exchange: 'commands', prefetch: 64 };
const OTHER: ConsumedQueue = { ...QUEUE, name: 'users.commands.1' };

describe(HeldDeliveries.name, () => {
  let held: HeldDeliveries;
  let steps: string[];
  let lines: unknown[];
  const registry = new Registry();

  const consumer = ({ name }: ConsumedQueue) => ({
    pause: async (why: string) => void steps.push(`${name} pauses: ${why}`),
    resume: async (why: string) => void steps.push(`${name} goes on: ${why}`),
  });
  const change = (by: 1 | -1, times: number, queue = QUEUE) => {
    for (let time = 0; time < times; time++) held.change(queue, by);
  };
  const gauge = async (name: string) =>
    (await registry.getSingleMetric(name)!.get()).values.map(({ value, labels }) => [labels.queue, value]);

  beforeEach(() => {
    registry.clear();
    [steps, lines] = [[], []];
    for (const level of ['log', 'warn'] as const)
      jest.spyOn(Logger.prototype, level).mockImplementation((...[line]: unknown[]) => void lines.push(line));
    const metrics = TransportMetrics.of(new Registry());
    registry.registerMetric(metrics.lettersHeld);
    registry.registerMetric(metrics.lettersHeldLimit);
    held = new HeldDeliveries(new Map([QUEUE, OTHER].map((queue) => [queue, consumer(queue)])), metrics);
  });
  afterEach(() => void jest.restoreAllMocks());

  it('goes on to consume a queue with 15 of them, and counts them', async () => {
    change(1, 15);
    change(1, 15, OTHER);
    expect([steps, lines, held.check()]).toEqual([[], [], undefined]);
    expect(await gauge('rabbitmq_letters_held')).toEqual([
      [QUEUE.name, 15],
      [OTHER.name, 15],
    ]);
    expect(await gauge('rabbitmq_letters_held_limit')).toEqual([[undefined, 16]]);
  });

  it('stops a queue with as many as the broker sends to this process', () => {
    const few = { ...QUEUE, prefetch: 8 };
    held = new HeldDeliveries(new Map([[few, consumer(few)]]), TransportMetrics.of(new Registry()));
    change(1, 7, few);
    expect([steps, held.check()]).toEqual([[], undefined]);
    change(1, 1, few);
    expect(steps).toEqual([`${QUEUE.name} pauses: letters`]);
    expect(held.check()).toMatch(/is not consumed/);
  });

  it('stops that queue with the 16th, says so once, and goes on with 15', () => {
    change(1, 17);
    expect(steps).toEqual([`${QUEUE.name} pauses: letters`]);
    expect(held.check()).toBe('users.commands.0 is not consumed: the broker does not take its retries and dead letters');
    expect(lines).toEqual([
      {
        msg: 'a queue is not consumed',
        queue: QUEUE.name,
        held: 16,
        reason: 'the broker does not take its retries and dead letters',
        hint: expect.stringMatching(/dead-letters.*docs\/runbooks\/QueueNotConsumed\.md/) as string,
      },
    ]);
    change(-1, 1);
    expect(steps).toHaveLength(1);
    change(-1, 1);
    expect(steps.slice(1)).toEqual([`${QUEUE.name} goes on: letters`]);
    expect(held.check()).toBeUndefined();
    expect(lines.slice(1)).toEqual([{ msg: 'a queue is consumed again', queue: QUEUE.name, held: 15 }]);
  });
});
