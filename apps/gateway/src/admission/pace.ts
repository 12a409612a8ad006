/** Work of which only a few pieces begin in one iteration of the event loop, so that a flood of it does not delay the calls in flight. */
export class Pace {
  private readonly queue: (() => void)[] = [];
  private begun = 0;
  private scheduled = false;

  /** @param most pieces that begin in one iteration */
  constructor(private readonly most: number) {}

  /** Whether a piece may begin in this iteration. */
  get isFree(): boolean {
    return this.begun < this.most && this.queue.length === 0;
  }

  /** Pieces that wait for a later iteration. */
  get waiting(): number {
    return this.queue.length;
  }

  /** Begins now, if {@link isFree}, else later. */
  begin(work: () => void): void {
    if (!this.isFree) return this.later(work);
    this.begun++;
    this.schedule();
    work();
  }

  /** Begins in a later iteration, after what waits already. */
  later(work: () => void): void {
    this.queue.push(work);
    this.schedule();
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => this.nextIteration());
  }

  private nextIteration(): void {
    this.scheduled = false;
    const works = this.queue.splice(0, this.most);
    this.begun = works.length;
    // Before the works begin: one that throws must not stop the others.
    if (works.length > 0) this.schedule();
    for (const work of works) work();
  }
}
