import { KeyRateLimiter } from './key-rate-limiter';

describe(KeyRateLimiter.name, () => {
  afterEach(() => jest.restoreAllMocks());

  it('limits nothing when it is switched off', async () => {
    const limiter = new KeyRateLimiter(0);
    expect([await limiter.excess('a key'), await limiter.excess('a key')]).toEqual([undefined, undefined]);
  });

  it('asks nobody to wait longer than its window, also when the clock of the machine was set back', async () => {
    const limiter = new KeyRateLimiter(1);
    expect(await limiter.excess('a key')).toBeUndefined();
    const now = Date.now();
    jest.spyOn(Date, 'now').mockReturnValue(now - 3_600_000);
    expect(await limiter.excess('a key')).toBe(1000);
    expect(await limiter.excess('another key')).toBeUndefined();
  });
});
