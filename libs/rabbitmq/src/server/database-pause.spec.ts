import type { Delivery } from '../delivery/delivery';
import { DatabasePause } from './database-pause';

describe(DatabasePause.name, () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  const setUp = () => {
    let back = false;
    const states: string[] = [];
    const probe = async () => {
      if (!back) throw new Error('away');
    };
    const pause = new DatabasePause(probe, (state) => states.push(state));
    return { pause, states, comeBack: () => (back = true) };
  };

  it('lets a query be tried again once, after a restart of the database', async () => {
    const { pause, states, comeBack } = setUp();
    const query = { mayHaveRun: false };
    const again = pause.mayTryAgain(query, performance.now());
    comeBack();
    await jest.advanceTimersByTimeAsync(999);
    expect(await again).toBe(true);
    expect(states).toEqual(['away', 'here']);
    expect(await pause.mayTryAgain(query, performance.now())).toBe(false);
  });

  it('lets no query be tried again when the database is away for longer', async () => {
    const { pause, states } = setUp();
    const again = pause.mayTryAgain({ mayHaveRun: false }, performance.now());
    await jest.advanceTimersByTimeAsync(1000);
    expect(await again).toBe(false);
    expect(states).toEqual(['away', 'long']);
    expect(await pause.mayTryAgain({ mayHaveRun: false }, performance.now())).toBe(false);
    pause.stop();
  });

  it('lets no query be tried again that took long to fail: the database was silent, and commands need not wait', async () => {
    const { pause, states } = setUp();
    const again = pause.mayTryAgain({ mayHaveRun: false }, performance.now() - 1001);
    await jest.advanceTimersByTimeAsync(1000);
    expect(await again).toBe(false);
    expect(states).toEqual([]);
    pause.stop();
  });

  it('probes as soon in a restart as before, also after the database was away for long', async () => {
    const timers = jest.requireActual<{ setTimeout: (ms: number) => Promise<void> }>('node:timers/promises');
    const waits = jest.spyOn(timers, 'setTimeout').mockResolvedValue();
    let failures = 10;
    const probe = () => (failures-- > 0 ? Promise.reject(new Error('away')) : Promise.resolve());
    const pause = new DatabasePause(probe, () => undefined);
    await pause.begin();
    expect(waits.mock.calls.at(-1)?.[0]).toBeGreaterThanOrEqual(500);
    jest.advanceTimersByTime(10_001);
    await pause.begin();
    expect(waits).toHaveBeenCalledTimes(12);
    expect(waits.mock.calls.at(-1)?.[0]).toBeLessThanOrEqual(100);
    waits.mockRestore();
  });

  it('does not say that the database is back when the process stops', async () => {
    const { pause, states } = setUp();
    const over = pause.begin();
    pause.stop();
    await jest.advanceTimersByTimeAsync(1000);
    await over;
    expect(pause.active).toBe(false);
    expect(states).toEqual(['away']);
  });

  it('begins no pause in a process that stops: it would not end', async () => {
    const { pause } = setUp();
    pause.stop();
    await pause.begin();
    expect(pause.active).toBe(false);
    expect(await pause.mayStart({ mayBeRefused: false } as Delivery)).toBe(true);
  });
});
