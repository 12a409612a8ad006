import type { Gauge } from 'prom-client';

/** So much of something that only so much of may be in use at a time. */
export class Room {
  private used = 0;

  constructor(
    private readonly max: number,
    private readonly gauge: Gauge,
  ) {}

  has(amount = 1): boolean {
    return this.used + amount <= this.max;
  }

  /** @returns false when there is no room */
  take(amount = 1): boolean {
    if (!this.has(amount)) return false;
    this.gauge.set((this.used += amount));
    return true;
  }

  give(amount = 1): void {
    this.gauge.set((this.used -= amount));
  }
}
