import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { QueueConsumer } from '../delivery/queue-consumer';

/** How long the other consumers stay paused after a suspect, in case another one follows, in milliseconds. */
const QUIET_MS = 50;
/** Longer than a process takes to start. */
const CRASH_PAUSE_MS = 5000;

/** Runs work while this process handles no other command. If the work crashes the process, no other delivery count grows. */
export class Solitude {
  private quiet?: NodeJS.Timeout;
  private readonly stopping = new AbortController();

  /** @param running the commands and events whose handlers may run */
  constructor(
    private readonly running: ReadonlySet<Promise<unknown>>,
    private readonly crashPauseMs = CRASH_PAUSE_MS,
  ) {
    // As many as deliveries that wait, which the prefetch bounds.
    setMaxListeners(0, this.stopping.signal);
  }

  /** Milliseconds before a delivery that may have ended a process just now. Random, so that two of them do not end two processes at once. */
  get pauseMs(): number {
    return this.crashPauseMs * (1 + Math.random());
  }

  /**
   * Waits before a delivery that may have ended a process just now, so that it does not end the next one before the first is back.
   *
   * @returns false when this process stops meanwhile
   */
  async afterCrash(pauseMs: number): Promise<boolean> {
    const { signal } = this.stopping;
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    return !signal.aborted;
  }

  async run<T>(others: readonly QueueConsumer[], work: () => Promise<T>): Promise<T> {
    clearTimeout(this.quiet);
    await Promise.all(others.map((consumer) => consumer.pause('suspect')));
    await Promise.allSettled(this.running);
    try {
      return await work();
    } finally {
      // If there is another suspect, it is delivered at once.
      this.quiet = setTimeout(() => others.forEach((consumer) => void consumer.resume('suspect')), QUIET_MS);
    }
  }

  stop(): void {
    this.stopping.abort();
    clearTimeout(this.quiet);
  }
}
