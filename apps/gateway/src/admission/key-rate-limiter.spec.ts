import { KeyRateLimiter } from './key-rate-limiter';

describe(KeyRateLimiter.name, () => {
  afterEach(() => jest.restoreAllMocks());

  it('asks nobody to wait longer than its window, also when the clock of the machine was set back', async () => {
    const limiter = new KeyRateLimiter(1);
    expect(await limiter.excess('a key')).toBeUndefined();
    const now = Date.now();
    jest.spyOn(Date, 'now').mockReturnValue(now - 3_600_000);
    expect(await limiter.excess('a key')).toBe(1000);
    expect(await limiter.excess('another key')).toBeUndefined();
  });
});
