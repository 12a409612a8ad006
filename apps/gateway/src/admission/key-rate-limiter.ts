import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

const WINDOW_MS = 1000;

/** Limits the calls per second of each API key, in this process. */
export class KeyRateLimiter {
  private readonly limiter?: RateLimiterMemory;

  /** @param perSecond 0 switches the limit off */
  constructor(perSecond: number) {
    if (perSecond > 0) this.limiter = new RateLimiterMemory({ points: perSecond, duration: WINDOW_MS / 1000 });
  }

  /** Counts one call. @returns the milliseconds to wait when the key is above its limit; else undefined */
  async excess(apiKey: string): Promise<number | undefined> {
    try {
      await this.limiter?.consume(apiKey);
      return undefined;
    } catch (refused) {
      // It is computed from the clock of the machine, which may be set back. The window itself ends by a timer.
      if (refused instanceof RateLimiterRes) return Math.min(refused.msBeforeNext, WINDOW_MS);
      throw refused;
    }
  }
}
