import { LRUCache } from 'lru-cache';

/** Keys that are counted: those that called last. */
const MOST_KEYS = 1000;

/** Counts the calls of each API key in this process, for the operator's page. Not a metric: callers would create its series. */
export class BusyKeys {
  private readonly keys = new LRUCache<string, { calls: number }>({ max: MOST_KEYS });

  count(apiKey: string): void {
    const known = this.keys.get(apiKey);
    if (known) known.calls++;
    else this.keys.set(apiKey, { calls: 1 });
  }

  /** Calls since the start of the process, or since the key was not among the last 1,000. */
  report = () => ({ calls: Object.fromEntries([...this.keys].map(([key, { calls }]) => [key, calls])) });
}
