import { LRUCache } from 'lru-cache';

/** Target time of a step, in milliseconds. A longer one halves the size of the next step, a shorter one doubles it. */
const GOOD_MS = 250;
const MAX_KEYS = 1000;

/** Size of the step after one that has taken so long. */
export const nextSize = (size: number, tookMs: number, least: number, most: number): number =>
  Math.max(least, Math.min(most, tookMs > GOOD_MS ? size >> 1 : size << 1));

/** How many rows a step may work on, for each API key: steps of others do not get smaller because the rows of one key are large. */
export class StepSizes {
  private readonly sizes = new LRUCache<string, number>({ max: MAX_KEYS });

  constructor(
    private readonly first: number,
    private readonly least: number,
    private readonly most: number,
  ) {}

  of(apiKey: string): number {
    return this.sizes.get(apiKey) ?? this.first;
  }

  /**
   * @param tookMs Infinity for a step that has failed
   * @param isFull whether it had as many rows as it may: a fast one with fewer does not show that more are possible
   */
  took(apiKey: string, tookMs: number, isFull = true): void {
    if (isFull || tookMs > GOOD_MS) this.sizes.set(apiKey, nextSize(this.of(apiKey), tookMs, this.least, this.most));
  }
}
