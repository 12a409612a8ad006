/** Lets so many run at a time; so many others wait for their turn, the first one first, but not for long. */
export class Semaphore {
  private running = 0;
  private readonly waiting: { since: number; begin: (mayBegin: boolean) => void }[] = [];

  /** @param now monotonic milliseconds */
  constructor(
    private readonly limits: { atATime: number; waiting: number; patienceMs: number },
    private readonly now: () => number,
  ) {}

  /** Whether one would be turned away at once. */
  get isFull(): boolean {
    return this.running >= this.limits.atATime && this.waiting.length >= this.limits.waiting;
  }

  /** @returns true at once when nobody has to wait; false when it is not one's turn and will not be: too many wait, or it took too long */
  take(): boolean | Promise<boolean> {
    if (this.running < this.limits.atATime) {
      this.running++;
      return true;
    }
    if (this.isFull) return false;
    return new Promise((begin) => this.waiting.push({ since: this.now(), begin }));
  }

  /** One that had its turn has ended. */
  end(): void {
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
      const inTime = this.now() - next.since <= this.limits.patienceMs;
      next.begin(inTime);
      if (inTime) return;
    }
    this.running--;
  }
}
