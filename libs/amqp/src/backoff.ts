import { setTimeout as sleep } from 'node:timers/promises';

const STABLE_MS = 10_000;

/** Waits that double from `firstMs` to `mostMs` milliseconds. Half of each wait is random, so that many clients do not return at once. */
export class Backoff {
  private failures = 0;
  private succeededAt = Infinity;

  constructor(
    private readonly firstMs = 100,
    private readonly mostMs = 5000,
  ) {}

  /** Reports a success. The waits start again from the first one only after 10 s without a failure. */
  succeeded(): void {
    this.succeededAt = performance.now();
  }

  /** Whether the latest success was 10 s ago, or longer, without a failure since. */
  get isStable(): boolean {
    return performance.now() - this.succeededAt > STABLE_MS;
  }

  /** Resolves after the next wait, or as soon as the signal aborts. */
  async wait(signal: AbortSignal): Promise<void> {
    if (this.isStable) this.failures = 0;
    this.succeededAt = Infinity;
    const ceiling = Math.min(this.mostMs, this.firstMs * 2 ** this.failures++);
    await sleep(ceiling / 2 + (Math.random() * ceiling) / 2, undefined, { signal }).catch(() => undefined);
  }
}
