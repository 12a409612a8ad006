import type { QueueConsumer } from '../delivery/queue-consumer';

/** How long the other consumers wait after a suspect for the next one, in milliseconds. */
const QUIET_MS = 50;

/** Runs work with no other command in this process: if it ends the process, nothing else is counted as delivered in vain. */
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
      // The next suspect, if there is one, comes at once.
      this.quiet = setTimeout(() => others.forEach((consumer) => void consumer.resume('suspect')), QUIET_MS);
    }
  }

  stop(): void {
    clearTimeout(this.quiet);
  }
}
