import { KeptEvents } from './kept-events';

describe(KeptEvents.name, () => {
  let waited: jest.Mock;
  let kept: KeptEvents;
  beforeEach(() => {
    jest.useFakeTimers();
    kept = new KeptEvents((waited = jest.fn()));
  });
  afterEach(() => {
    kept.stop();
    jest.useRealTimers();
  });

  const numbered = (count: number) => Array.from({ length: count }, (_, index) => `${index}`);
  const wait = () => jest.advanceTimersByTime(5000);

  it('lets none come back that has not waited, nor one while there are others', () => {
    kept.add(['a']);
    expect(kept.comeBack(false, 200)).toBe(false);
    wait();
    expect(waited).toHaveBeenCalledTimes(1);
    expect(kept.comeBack(true, 200)).toBe(false);
    expect(kept.all).toEqual(['a']);
    expect(kept.comeBack(false, 200)).toBe(true);
    expect(kept.all).toEqual([]);
  });

  it('lets those come back first that were refused first, a batch at a time', () => {
    kept.add(['a', 'b', 'c']);
    wait();
    kept.add(['later']);
    expect(kept.comeBack(false, 2)).toBe(true);
    expect(kept.all).toEqual(['c', 'later']);
    // Refused again.
    kept.add(['a', 'b']);
    expect(kept.comeBack(false, 2)).toBe(true);
    expect(kept.all).toEqual(['later', 'a', 'b']);
    expect(kept.comeBack(false, 2)).toBe(false);
    wait();
    expect(waited).toHaveBeenCalledTimes(2);
    expect(kept.comeBack(false, 200)).toBe(true);
    expect(kept.all).toEqual([]);
  });

  it('waits longer each time, until there is none any more', () => {
    expect(kept.add(['a'])).toBe(1);
    expect(kept.add(['b'])).toBeUndefined();
    wait();
    kept.comeBack(false, 200);
    expect(kept.add(['a'])).toBe(2);
    wait();
    expect([kept.comeBack(false, 200), kept.comeBack(false, 200)]).toEqual([true, false]);
    expect(kept.add(['a'])).toBe(1);
  });

  it('lets them come back among the others when they are too many', () => {
    kept.add(numbered(5001));
    expect(kept.comeBack(true, 200)).toBe(true);
    expect(kept.all).toHaveLength(4801);
    expect(kept.comeBack(true, 200)).toBe(false);
  });

  it('keeps no more of a backlog than a publisher tries again, while a listener takes a third of each batch', () => {
    let left = numbered(20_000);
    let most = 0;
    while (left.length > 0) {
      const others = new Set(kept.all);
      most = Math.max(most, others.size);
      const batch = left.filter((seq) => !others.has(seq)).slice(0, 200);
      // 2,800 events a second.
      jest.advanceTimersByTime(71);
      const taken = new Set(batch.slice(0, 70));
      left = left.filter((seq) => !taken.has(seq));
      if (batch.length > taken.size) kept.add(batch.slice(taken.size));
      kept.comeBack(batch.length === 200, 150);
    }
    expect(most).toBeLessThan(10_000);
  });
});
