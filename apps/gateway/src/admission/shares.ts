/** A holder may have 4 times the free amount: four fifths of all if it is the only one, four ninths each if there are two. */
const OF_WHAT_IS_FREE = 4;

/** Reason why there is no room: everything is taken, or the holder has its share. */
export type Met = 'all' | 'share';

/**
 * Shares of a limited amount. A holder may take more while it has less than a multiple of the free amount (the dynamic threshold of Choudhury and
 * Hahne). So a new holder finds room at once, and as amounts are returned all holders converge to equal shares, without a clock.
 */
export class Shares {
  /** Amount by holder. Holders without any are removed. */
  private readonly holders = new Map<string, number>();
  private held = 0;

  /** @param report called with the total held amount after each change */
  constructor(
    private readonly max: number,
    private readonly report: (held: number) => void = () => undefined,
  ) {}

  get all(): number {
    return this.held;
  }

  /** The amount of a holder. */
  of(holder: string): number {
    return this.holders.get(holder) ?? 0;
  }

  /** The reason why a holder cannot have the amount. @param free the free amount, if it is less than `max` minus the held amount */
  problem(holder: string, amount: number, free = this.max - this.held): Met | undefined {
    const own = this.of(holder);
    if (own > 0 && own >= OF_WHAT_IS_FREE * free) return 'share';
    return amount > free ? 'all' : undefined;
  }

  /** @returns the reason why there is no room; undefined when the amount was taken */
  take(holder: string, amount: number): Met | undefined {
    const met = this.problem(holder, amount);
    if (!met) this.add(holder, amount);
    return met;
  }

  /** Takes the amount even without room, because it is in use already. */
  add(holder: string, amount: number): void {
    this.holders.set(holder, this.of(holder) + amount);
    this.report((this.held += amount));
  }

  give(holder: string, amount: number): void {
    const left = this.of(holder) - amount;
    if (left > 0) this.holders.set(holder, left);
    else this.holders.delete(holder);
    this.report((this.held -= amount));
  }

  /** Whether any holder could be over its share. */
  isUneven(free: number): boolean {
    return this.held > 0 && this.held >= OF_WHAT_IS_FREE * free;
  }
}
