import { LRUCache } from 'lru-cache';

/** A key is settled when its first answer is so old. A flood of new keys is usually over by then. */
const SETTLED_MS = 30_000;
/** In a younger process: this part of the time since the first answer of all. */
const PART_OF_TIME = 0.9;
/** A key without an answer for this time is new again. */
const FORGOTTEN_MS = 60_000;
const MAX_KEYS = 10_000;

/** Knows which keys have been answered for some time, unlike those that come all at once. Times are in milliseconds of `performance.now()`. */
export class SettledKeys {
  private readonly keys = new LRUCache<string, { firstAt: number; lastAt: number }>({ max: MAX_KEYS });
  private firstAt?: number;

  answered(apiKey: string): void {
    const now = performance.now();
    this.firstAt ??= now;
    const known = this.known(apiKey, now);
    if (known) known.lastAt = now;
    else this.keys.set(apiKey, { firstAt: now, lastAt: now });
  }

  has(apiKey: string): boolean {
    const now = performance.now();
    const known = this.known(apiKey, now);
    if (!known || this.firstAt === undefined) return false;
    return now - known.firstAt >= Math.min(SETTLED_MS, PART_OF_TIME * (now - this.firstAt));
  }

  private known(apiKey: string, now: number): { firstAt: number; lastAt: number } | undefined {
    const known = this.keys.get(apiKey);
    return known && now - known.lastAt <= FORGOTTEN_MS ? known : undefined;
  }
}
