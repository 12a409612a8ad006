/** One more look after a fixed time, for what is too young now: one timer for any number of wishes. */
export class LaterLook {
  private due = 0;
  private timer?: NodeJS.Timeout;

  constructor(
    private readonly afterMs: number,
    private readonly look: () => void,
  ) {}

  want(): void {
    this.due = performance.now() + this.afterMs;
    this.timer ??= this.wait(this.afterMs);
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
