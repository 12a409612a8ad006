import type { QueueConsumer } from '../delivery/queue-consumer';

/** How long the other consumers stay paused after a suspect, in case another one follows, in milliseconds. */
const QUIET_MS = 50;

/** Runs work while this process handles no other command. If the work crashes the process, no other delivery count grows. */
export class Solitude {
  private quiet?: NodeJS.Timeout;

  /** @param running the commands and events whose handlers may run */
  constructor(private readonly running: ReadonlySet<Promise<unknown>>) {}

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
    clearTimeout(this.quiet);
  }
}
