import { ApiError, type ErrorStatus } from '@app/contracts/error';
import { attempt } from './attempts';

const attempts = {
  timeoutMs: 10_000,
  signal: new AbortController().signal,
  whenReady: () => Promise.resolve(true),
  whyNot: () => new ApiError('UNAVAILABLE', 'away'),
};

/** @returns what the caller sees of attempts with these outcomes */
async function outcomeOf(...statuses: (ErrorStatus | 'OK')[]): Promise<string> {
  const once = () => {
    const status = statuses.shift()!;
    return status === 'OK' ? Promise.resolve('OK') : Promise.reject(new ApiError(status, status));
  };
  return attempt(attempts, once).catch((error: unknown) => (error as ApiError).status);
}

describe(attempt.name, () => {
  it.each<[string, (ErrorStatus | 'OK')[], string]>([
    ['the first success', ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'OK'], 'OK'],
    ['a refusal when nothing was done before', ['UNAVAILABLE', 'NOT_FOUND'], 'NOT_FOUND'],
    [
      'that the outcome is unknown, when what was missing may be created for an earlier attempt',
      ['DEADLINE_EXCEEDED', 'NOT_FOUND'],
      'DEADLINE_EXCEEDED',
    ],
    ['the same without the right', ['DEADLINE_EXCEEDED', 'UNAVAILABLE', 'PERMISSION_DENIED'], 'DEADLINE_EXCEEDED'],
    ['a refusal that was the same before', ['DEADLINE_EXCEEDED', 'INVALID_ARGUMENT'], 'INVALID_ARGUMENT'],
  ])('reports %s', async (_, statuses, outcome) => {
    expect(await outcomeOf(...statuses)).toBe(outcome);
  });

  it('waits longer after each failure', async () => {
    const since = performance.now();
    expect(await outcomeOf('UNAVAILABLE', 'UNAVAILABLE', 'UNAVAILABLE', 'OK')).toBe('OK');
    // At least half of 50, 100 and 200 ms. A timer may be early by a millisecond.
    expect(performance.now() - since).toBeGreaterThan(175 - 3);
  });

  describe('of which the first has failed', () => {
    const TIMEOUT_MS = 1000;
    let now: number;
    let times: number[];
    beforeEach(() => {
      [now, times] = [0, []];
      jest.spyOn(performance, 'now').mockImplementation(() => now);
    });
    afterEach(() => void jest.restoreAllMocks());

    /** @param tookMs of each attempt @param onFurther what happens while a further attempt waits for the broker */
    const failing = async (tookMs: number, signal: AbortSignal, onFurther: (timeoutMs: number) => void) => {
      const whenReady = (timeoutMs: number) => {
        if (times.length > 0) onFurther(timeoutMs);
        return Promise.resolve(true);
      };
      const once = (timeoutMs: number) => {
        times.push(timeoutMs);
        now += tookMs;
        return Promise.reject(new ApiError('UNAVAILABLE', 'no queue is bound'));
      };
      const failed = attempt({ ...attempts, timeoutMs: TIMEOUT_MS, signal, whenReady }, once);
      await expect(failed).rejects.toMatchObject({ message: 'no queue is bound' });
      return times;
    };

    it.each([4, 80])('makes no attempt with %d ms left, which might hide why the one before has failed', async (leftMs) => {
      const tookMs = (TIMEOUT_MS - leftMs) / 2;
      expect(await failing(tookMs, attempts.signal, () => undefined)).toEqual([1000, 1000 - tookMs]);
    });

    it('makes no attempt when the broker is back in the last moment', async () => {
      expect(await failing(0, attempts.signal, (timeoutMs) => (now += timeoutMs - 5))).toEqual([1000]);
    });

    it('makes no attempt when the client is closed meanwhile', async () => {
      const closing = new AbortController();
      expect(await failing(0, closing.signal, () => closing.abort())).toEqual([1000]);
    });
  });

  it('leaves nothing at the signal of the client, which lives as long as the process', async () => {
    const { signal } = new AbortController();
    let times = 0;
    const once = () => (times++ < 2 ? Promise.reject(new ApiError('UNAVAILABLE', 'away')) : Promise.resolve('OK'));
    expect(await attempt({ ...attempts, signal }, once)).toBe('OK');
    // Node keeps listeners, and the signals that were made of this one, in collections of the signal.
    const sizes = Object.getOwnPropertySymbols(signal).map(
      (name) => (signal as unknown as Record<symbol, { size?: number }>)[name]?.size,
    );
    expect(sizes.filter(Boolean)).toEqual([]);
  });
});
