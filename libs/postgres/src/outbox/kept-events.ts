import { waitAfter } from '@app/runtime/wait-after';

/** With more than that they come back among the others, and do not wait. EventPublisher holds 10,000: each further one is lost at its first refusal. */
const MOST = 5000;

/** Events of the outbox that must be published again, by `seq`. The relay skips them for a while, so that they do not block other events. */
export class KeptEvents {
  /** The one that was refused first is first. */
  private readonly seqs = new Set<string>();
  private rounds = 0;
  /** How many of the first ones have waited. */
  private due = 0;
  private timer?: NodeJS.Timeout;

  /** @param waited called when events may come back */
  constructor(private readonly waited: () => void) {}

  get all(): string[] {
    return [...this.seqs];
  }

  /** @returns the number of waits since the outbox was empty, if this call starts a wait; else undefined. The waits grow with this number */
  add(seqs: readonly string[]): number | undefined {
    for (const seq of seqs) this.seqs.add(seq);
    if (this.timer || this.due > 0) return undefined;
    this.wait();
    return this.rounds;
  }

  /**
   * To be called after each batch. Events come back when no others are left, or when too many are kept, and not all at once: what is new finds room.
   *
   * @param more whether there may be others
   * @param most most events that come back
   * @returns whether any have
   */
  comeBack(more: boolean, most: number): boolean {
    if (more && this.seqs.size <= MOST) return false;
    const back = this.all.slice(0, more ? most : Math.min(this.due, most));
    for (const seq of back) this.seqs.delete(seq);
    this.due = Math.max(0, this.due - back.length);
    if (back.length > 0) return true;
    if (this.seqs.size === 0) this.rounds = 0;
    else if (!this.timer) this.wait();
    return false;
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private wait(): void {
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.due = this.seqs.size;
      this.waited();
    }, waitAfter(++this.rounds)).unref();
  }
}
