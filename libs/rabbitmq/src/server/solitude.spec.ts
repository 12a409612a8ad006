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
});
