import { setMaxListeners } from 'node:events';
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
import { within } from '@app/runtime/within';
import type { QueueConsumer } from '../delivery/queue-consumer';
import type { ConsumedQueue } from '../topology/consumed-queues';

/** How long the other consumers stay paused after a suspect, in case another one follows, in milliseconds. */
const QUIET_MS = 50;
/** Longer than a process takes to start. */
const CRASH_PAUSE_MS = 5000;
/** Longest wait for commands on their way to the queue of the suspects. A full one takes them only when a suspect has left it. */
const MOVE_MS = 2000;

/** Runs work while this process handles no other command. If the process crashes, this work has done it. */
export class Solitude {
  private quiet?: NodeJS.Timeout;
  private rested?: NodeJS.Timeout;
  private readonly stopping = new AbortController();
  /** Commands and events whose handlers may run. */
  private readonly running = new Set<Promise<unknown>>();
  /** Commands that go to the queue of the suspects. If the process crashes, the next one publishes them once more. */
  private readonly moving = new Set<Promise<unknown>>();
  /** Work that no other command may run beside. */
  private readonly alone = new Set<Promise<unknown>>();
  private waiting = new AbortController();

  constructor(
    private readonly consumers: ReadonlyMap<ConsumedQueue, Pick<QueueConsumer, 'pause' | 'resume'>>,
    private readonly crashPauseMs = CRASH_PAUSE_MS,
  ) {
    // As many as deliveries that wait, which the prefetch bounds.
    setMaxListeners(0, this.stopping.signal);
  }

  /**
   * How long a delivery waits that may have ended a process just now, in milliseconds: until that one is back. Random, so that two of them do not end two
   * processes at once.
   */
  crashPause(): number {
    return this.crashPauseMs * (1 + Math.random());
  }

  /** Waits for this time, and for a suspect that is handled then. @returns false when this process stops meanwhile */
  async afterPause(ms: number): Promise<boolean> {
    const { signal } = this.stopping;
    await sleep(ms, undefined, { signal }).catch(() => undefined);
    // Work that begins now was not there when the suspect began: the suspect has not waited for it, and no pause of a consumer holds it up.
    while (this.alone.size > 0 && !signal.aborted) await Promise.allSettled(this.alone);
    return !signal.aborted;
  }

  /** Work that ends before a suspect is handled. */
  before<T>(work: Promise<T>): Promise<T> {
    return tracked(this.running, work);
  }

  /** A command on its way to the queue of the suspects. */
  move<T>(settled: Promise<T>): Promise<T> {
    return tracked(this.moving, settled);
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    return tracked(this.alone, this.runAlone(work));
  }

  /** Ends the wait for other work, which may take as long as the database is away. */
  waitNoLonger(): void {
    this.waiting.abort();
  }

  /**
   * Takes no suspect from this queue for a time, in milliseconds, after one that may have ended a process: the next one may end this process as well.
   */
  rest(queue: ConsumedQueue, ms: number): void {
    const consumer = this.consumers.get(queue);
    clearTimeout(this.rested);
    // Not awaited: a consumer that moves to another node waits for this delivery. The confirm comes after the cancel.
    void consumer?.pause('suspect');
    if (!this.stopping.signal.aborted) this.rested = setTimeout(() => void consumer?.resume('suspect'), ms);
  }

  stop(): void {
    this.stopping.abort();
    clearTimeout(this.quiet);
    clearTimeout(this.rested);
  }

  private async runAlone<T>(work: () => Promise<T>): Promise<T> {
    const others = [...this.consumers].flatMap(([{ kind, alone }, consumer]) => (kind === 'queries' || alone ? [] : consumer));
    const { signal } = (this.waiting = new AbortController());
    clearTimeout(this.quiet);
    await Promise.all(others.map((consumer) => consumer.pause('suspect')));
    try {
      await Promise.race([this.othersEnded(), aborted(signal)]);
      return await work();
    } finally {
      // After a lost channel, the same suspect comes again while it runs.
      const goOn = () => {
        if (this.alone.size === 0) for (const consumer of others) void consumer.resume('suspect');
      };
      // If there is another suspect, it is delivered at once.
      this.quiet = setTimeout(goOn, QUIET_MS);
    }
  }

  private async othersEnded(): Promise<void> {
    await Promise.allSettled(this.running);
    // A decision is carried out in the same iteration.
    await immediate();
    await within(MOVE_MS, Promise.allSettled(this.moving));
  }
}

function tracked<T>(set: Set<Promise<unknown>>, work: Promise<T>): Promise<T> {
  set.add(work);
  return work.finally(() => set.delete(work));
}

/** Also of a signal that is aborted already: it fires no event. */
const aborted = (signal: AbortSignal) =>
  signal.aborted ? Promise.resolve() : new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
