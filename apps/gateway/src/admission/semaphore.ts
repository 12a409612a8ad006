import { FairQueue } from '@app/runtime/fair-queue';
import { Shares } from './shares';

interface Waiting {
  owner: string;
  since: number;
  begin: (mayBegin: boolean) => void;
}

/**
 * Limits the tasks that run at once. A limited number of others wait, for at most `patienceMs`. Owners take turns, and have shares of the places for
 * waiting tasks.
 */
export class Semaphore {
  private running = 0;
  private readonly queue = new FairQueue<Waiting>();
  private readonly places: Shares;

  /** @param now monotonic milliseconds */
  constructor(
    private readonly limits: { atATime: number; waiting: number; patienceMs: number },
    private readonly now: () => number,
  ) {
    this.places = new Shares(limits.waiting);
  }

  /** Whether a further task of the owner would be refused at once. */
  isFull(owner: string): boolean {
    return this.running >= this.limits.atATime && this.places.problem(owner, 1) !== undefined;
  }

  /** @returns true when the task may run; false when too many tasks wait, or it waited too long. Synchronous when there is no need to wait */
  take(owner: string): boolean | Promise<boolean> {
    if (this.running < this.limits.atATime) {
      this.running++;
      return true;
    }
    if (this.places.take(owner, 1)) return false;
    return new Promise((begin) => this.queue.add(owner, { owner, since: this.now(), begin }));
  }

  /** A task that was allowed to run has ended. */
  end(): void {
    for (let next = this.next(); next; next = this.next()) {
      const inTime = this.now() - next.since <= this.limits.patienceMs;
      next.begin(inTime);
      if (inTime) return;
    }
    this.running--;
  }

  private next(): Waiting | undefined {
    const next = this.queue.takeFirst(() => true);
    if (next) this.places.give(next.owner, 1);
    return next;
  }
}
