/** One more look for what is too young now: one timer for any number of wishes. */
export class LaterLook {
  private due = 0;
  private timer?: NodeJS.Timeout;

  /** @param afterMs age at which nothing is too young */
  constructor(
    private readonly afterMs: number,
    private readonly look: () => void,
  ) {}

  /** @param oldestMs age of the oldest of what is too young, less than `afterMs`. It has a look of its own when its time comes */
  want(oldestMs = 0): void {
    this.due = performance.now() + this.afterMs;
    this.timer ??= this.wait(this.afterMs - oldestMs);
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private wait(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      const left = this.due - performance.now();
      this.timer = left > 0 ? this.wait(left) : undefined;
      this.look();
    }, ms).unref();
  }
}
