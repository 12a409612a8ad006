import { SettledKeys } from './settled-keys';

describe(SettledKeys.name, () => {
  let keys: SettledKeys;

  beforeEach(() => {
    jest.useFakeTimers();
    keys = new SettledKeys();
  });
  afterEach(() => void jest.useRealTimers());

  /** Answers these keys once a second. */
  function answer(seconds: number, ...apiKeys: string[]): void {
    for (let second = 0; second < seconds; second++) {
      for (const apiKey of apiKeys) keys.answered(apiKey);
      jest.advanceTimersByTime(1000);
    }
  }

  it('takes a key for settled half a minute after its first answer, however often new ones are answered meanwhile', () => {
    answer(60, 'good');
    answer(29, 'good', 'new');
    expect([keys.has('good'), keys.has('new'), keys.has('unknown')]).toEqual([true, false, false]);
    answer(1, 'good', 'new');
    expect(keys.has('new')).toBe(true);
  });

  it('knows in a young process the keys that came first', () => {
    answer(4, 'good');
    answer(20, 'good', 'new');
    expect([keys.has('good'), keys.has('new')]).toEqual([true, false]);
  });

  it('remembers a key that calls seldom, and forgets it after a minute without an answer', () => {
    answer(1, 'seldom');
    answer(58, 'good');
    expect(keys.has('seldom')).toBe(true);
    answer(1, 'seldom');
    answer(61, 'good');
    expect(keys.has('seldom')).toBe(false);
    answer(1, 'seldom');
    expect(keys.has('seldom')).toBe(false);
  });

  it('remembers a settled key while more new ones are answered than it can remember', () => {
    answer(60, 'good');
    for (let key = 0; key < 30_000; key++) {
      keys.answered(`new ${key}`);
      if (key % 100 === 0) keys.answered('good');
    }
    expect(keys.has('good')).toBe(true);
  });
});
