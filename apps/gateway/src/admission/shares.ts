/** How many times what is free one holder may have: 4 leaves the only one a fifth short of everything, and two holders four ninths each. */
const OF_WHAT_IS_FREE = 4;

/** Why there is no room: everything is taken, or the holder has its share. */
export type Met = 'all' | 'share';

/**
 * So much of something that only so much of may be held at a time. One holder may take more as long as it has less than a multiple of what
 * is free (the dynamic threshold of Choudhury and Hahne). So the next holder finds room at once, and as things are given back both come to
 * equal shares, without a clock.
 */
export class Shares {
  /** Only of those who hold something. */
  private readonly holders = new Map<string, number>();
  private held = 0;

  /** @param report is told how much is held, at each change */
  constructor(
    private readonly max: number,
    private readonly report: (held: number) => void = () => undefined,
  ) {}

  get all(): number {
    return this.held;
  }

  /** Why a holder cannot have so much. @param free where it is less than what nobody holds */
  problem(holder: string, amount: number, free = this.max - this.held): Met | undefined {
    const own = this.holders.get(holder) ?? 0;
    if (own > 0 && own >= OF_WHAT_IS_FREE * free) return 'share';
    return amount > free ? 'all' : undefined;
  }

  /** @returns why there is no room; undefined when it was taken */
  take(holder: string, amount: number, free?: number): Met | undefined {
    const met = this.problem(holder, amount, free);
    if (!met) this.add(holder, amount);
    return met;
  }

  /** Takes what is there already, room or not. */
  add(holder: string, amount: number): void {
    this.holders.set(holder, (this.holders.get(holder) ?? 0) + amount);
    this.report((this.held += amount));
  }

  give(holder: string, amount: number): void {
    const left = (this.holders.get(holder) ?? 0) - amount;
    if (left > 0) this.holders.set(holder, left);
    else this.holders.delete(holder);
    this.report((this.held -= amount));
  }

  /** Whether anybody could be over its share. */
  isUneven(free: number): boolean {
    return this.held > 0 && this.held >= OF_WHAT_IS_FREE * free;
  }
}
