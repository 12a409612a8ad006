import { setTimeout as sleep } from 'node:timers/promises';

const STABLE_MS = 10_000;

/** Waits that grow twofold from `firstMs` to `mostMs` milliseconds, each with half of it random so that many do not return as one. */
export class Backoff {
  private failures = 0;
  private succeededAt = Infinity;

  constructor(
    private readonly firstMs = 100,
    private readonly mostMs = 5000,
  ) {}

  /** What was tried works. The waits start from the first again only when it goes on working for 10 s. */
  succeeded(): void {
    this.succeededAt = performance.now();
  }

  /** Resolves after the next wait, or as soon as the signal aborts. */
  async wait(signal: AbortSignal): Promise<void> {
    if (performance.now() - this.succeededAt > STABLE_MS) this.failures = 0;
    this.succeededAt = Infinity;
    const ceiling = Math.min(this.mostMs, this.firstMs * 2 ** this.failures++);
    await sleep(ceiling / 2 + (Math.random() * ceiling) / 2, undefined, { signal }).catch(() => undefined);
  }
}
