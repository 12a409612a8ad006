/** Seeded randomness: the same seed makes the same choices. */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** A separate generator for each purpose, so that one purpose can be replayed alone. */
  static for(seed: number, purpose: string): Random {
    let mixed = seed;
    for (const letter of purpose) mixed = Math.imul(mixed ^ (letter.codePointAt(0) ?? 0), 0x01000193);
    return new Random(mixed);
  }

  /** Between 0 and 1, like Math.random. mulberry32. */
  readonly next = (): number => {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)];
  }

  word(length = 8): string {
    return Array.from({ length }, () => this.pick([...'abcdefghijklmnopqrstuvwxyz0123456789'])).join('');
  }
}

/** FAULT_SEED, or a new one. */
export const seedOfRun = (): number => Number(process.env.FAULT_SEED) || Math.floor(Math.random() * 2 ** 31) + 1;
