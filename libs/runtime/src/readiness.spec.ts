import { Readiness } from './readiness';

describe(Readiness.name, () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('names the dependencies that fail, and one that gives no answer for two seconds', async () => {
    const readiness = new Readiness();
    readiness.add('here', () => undefined);
    readiness.add('away', async () => 'a reason');
    readiness.add('thrown', () => {
      throw new Error('with a password');
    });
    readiness.add('rejected', () => Promise.reject(new Error('with a password')));
    readiness.add('silent', () => new Promise(() => undefined));
    const report = readiness.report();
    await jest.advanceTimersByTimeAsync(2000);
    expect(await report).toEqual({
      status: 'unavailable',
      checks: {
        here: 'up',
        away: 'a reason',
        thrown: 'is unreachable',
        rejected: 'is unreachable',
        silent: 'does not answer',
      },
    });
    expect(jest.getTimerCount()).toBe(0);
  });
});
