import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { waitAfter } from '@app/runtime/wait-after';

const STABLE_MS = 10_000;

/** Waits that double, see {@link waitAfter}. */
export class Backoff {
  private failures = 0;
  private succeededAt = Infinity;

  constructor(
    private readonly firstMs?: number,
    private readonly mostMs?: number,
  ) {}

  /** Reports a success. The waits start again from the first one only after 10 s without a failure. */
  succeeded(): void {
    this.forgetIfStable();
    this.succeededAt = performance.now();
  }

  /** Whether the latest success was 10 s ago, or longer, without a failure since. */
  get isStable(): boolean {
    return performance.now() - this.succeededAt > STABLE_MS;
  }

  /** Resolves after the next wait, which takes at most `mostMs`, or as soon as the signal aborts. */
  async wait(signal: AbortSignal, mostMs = this.mostMs): Promise<void> {
    this.forgetIfStable();
    this.succeededAt = Infinity;
    // Node warns of eleven waits, and each held delivery of a process waits for the same signal.
    setMaxListeners(0, signal);
    await sleep(waitAfter(++this.failures, this.firstMs, mostMs), undefined, { signal }).catch(() => undefined);
  }

  private forgetIfStable(): void {
    if (this.isStable) this.failures = 0;
  }
}
