/** Limits the tasks that run at once. A limited number of others wait in order, for at most `patienceMs`. */
export class Semaphore {
  private running = 0;
  private readonly waiting: { since: number; begin: (mayBegin: boolean) => void }[] = [];

  /** @param now monotonic milliseconds */
  constructor(
    private readonly limits: { atATime: number; waiting: number; patienceMs: number },
    private readonly now: () => number,
  ) {}

  /** Whether a further task would be refused at once. */
  get isFull(): boolean {
    return this.running >= this.limits.atATime && this.waiting.length >= this.limits.waiting;
  }

  /** @returns true when the task may run; false when too many tasks wait, or it waited too long. Synchronous when there is no need to wait */
  take(): boolean | Promise<boolean> {
    if (this.running < this.limits.atATime) {
      this.running++;
      return true;
    }
    if (this.isFull) return false;
    return new Promise((begin) => this.waiting.push({ since: this.now(), begin }));
  }

  /** A task that was allowed to run has ended. */
  end(): void {
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
      const inTime = this.now() - next.since <= this.limits.patienceMs;
      next.begin(inTime);
      if (inTime) return;
    }
    this.running--;
  }
}
