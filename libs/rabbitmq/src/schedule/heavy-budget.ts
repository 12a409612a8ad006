import { LIGHT, type Room } from './scheduled-work';

/** Heavy work up to this part of half of the budget is small. */
const PART_SMALL = 1 / 8;
/** The room of small work alone, as a part of half of the budget. */
const PART_OF_SMALL = 1 / 4;

/**
 * The room for heavy work, counted by its cost. Small heavy work has some beside the shared room, for the time when large work of others has taken
 * that: it runs for some milliseconds, and would wait for the end and the rest of pieces that run a hundred times as long.
 */
export class HeavyBudget {
  /** One piece counts for at most this, so that two always fit. */
  readonly half: number;
  private readonly taken: Record<Room, number> = { shared: 0, small: 0, none: 0 };

  constructor(private readonly whole: number) {
    this.half = whole / 2;
  }

  /**
   * @param most how much of the shared room may be taken
   * @returns undefined when there is no room
   */
  roomFor(cost: number, most: 'all' | 'half' | 'nothing'): Room | undefined {
    if (cost <= LIGHT) return 'none';
    const heaviness = this.heavinessOf(cost);
    const shared = { all: this.whole, half: this.half, nothing: 0 }[most];
    if (this.taken.shared + heaviness <= shared) return 'shared';
    return this.isSmall(cost) && this.taken.small + heaviness <= PART_OF_SMALL * this.half ? 'small' : undefined;
  }

  /** The room of work that has this cost in any case. @param taken the room that it has so far */
  roomOf(cost: number, taken: Room = 'shared'): Room {
    if (cost <= LIGHT) return 'none';
    return taken === 'small' && this.isSmall(cost) ? 'small' : 'shared';
  }

  take(room: Room, cost: number): void {
    this.taken[room] += this.heavinessOf(cost);
  }

  give(room: Room, cost: number): void {
    this.taken[room] -= this.heavinessOf(cost);
  }

  private isSmall(cost: number): boolean {
    return cost <= PART_SMALL * this.half;
  }

  /** A whole number: sums of fractions would not return to 0, and what needs half of the budget would find no room. */
  private heavinessOf(cost: number): number {
    return Math.min(Math.ceil(cost), this.half);
  }
}
