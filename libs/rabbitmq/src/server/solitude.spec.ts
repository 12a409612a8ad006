import { gate } from '@app/testing/gate';
import type { QueueConsumer } from '../delivery/queue-consumer';
import type { ConsumedQueue } from '../topology/consumed-queues';
import { Solitude } from './solitude';

describe(Solitude.name, () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('lets the others go on once, after the last of several suspects that follow each other', async () => {
    const steps: string[] = [];
    const other = {
      pause: async () => void steps.push('pause'),
      resume: async () => void steps.push('resume'),
    } as unknown as QueueConsumer;
    const solitude = new Solitude(new Map([[{ kind: 'commands' } as ConsumedQueue, other]]));
    for (const name of ['first', 'second', 'third']) {
      await solitude.run(async () => void steps.push(name));
      jest.advanceTimersByTime(49);
    }
    expect(steps).toEqual(['pause', 'first', 'pause', 'second', 'pause', 'third']);
    jest.advanceTimersByTime(1);
    expect(steps.slice(6)).toEqual(['resume']);
    solitude.stop();
  });

  it('lets the others go on only after the last suspect, also when a lost channel has left one that still runs', async () => {
    const steps: string[] = [];
    const other = {
      pause: async () => undefined,
      resume: async () => void steps.push('resume'),
    } as unknown as QueueConsumer;
    const solitude = new Solitude(new Map([[{ kind: 'commands' } as ConsumedQueue, other]]));
    const [left, again] = [gate(), gate()];
    const runs = [left, again].map(({ opened }) => solitude.run(() => opened));
    left.open();
    await runs[0];
    jest.advanceTimersByTime(50);
    expect(steps).toEqual([]);
    again.open();
    await runs[1];
    jest.advanceTimersByTime(50);
    expect(steps).toEqual(['resume']);
    solitude.stop();
  });

  it('does not wait for the work of others when the database has gone while they were paused', async () => {
    let paused!: () => void;
    const other = { pause: () => new Promise<void>((resolve) => (paused = resolve)), resume: async () => undefined };
    const solitude = new Solitude(new Map([[{ kind: 'commands' } as ConsumedQueue, other as unknown as QueueConsumer]]));
    void solitude.before(new Promise(() => undefined));
    const work = jest.fn(async () => undefined);
    const run = solitude.run(work);
    solitude.waitNoLonger();
    paused();
    await jest.advanceTimersByTimeAsync(0);
    expect(work).toHaveBeenCalled();
    await run;
    solitude.stop();
  });
});
