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
    kept.add(numbered(10_001));
    wait();
    expect(kept.comeBack(true, 200)).toBe(true);
    expect(kept.all).toHaveLength(9801);
    expect(kept.comeBack(true, 200)).toBe(false);
  });
});
