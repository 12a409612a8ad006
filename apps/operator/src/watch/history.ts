/** Ten minutes, one point every 2 s. */
export const POINTS = 300;
export const TICK_MS = 2000;
const MOST_SERIES = 1500;

/** The last points of named series, in memory that is bounded: 1,500 series of 300 points are 3.6 MB. */
export class History {
  private readonly series = new Map<string, { points: Float64Array; lastAt: number }>();
  private ticks = 0;
  /** Series that found no room in the last tick. */
  refused = 0;

  constructor(private readonly most = MOST_SERIES) {}

  /** Adds one point to each series; a series without a value gets a gap. A series with nothing but gaps ends. */
  add(values: Iterable<readonly [string, number]>): void {
    this.ticks++;
    this.refused = 0;
    for (const [name, value] of values) {
      const one = this.series.get(name) ?? this.begin(name);
      if (!one) continue;
      one.points[this.ticks % POINTS] = value;
      one.lastAt = this.ticks;
    }
    for (const [name, { points, lastAt }] of this.series) {
      if (lastAt !== this.ticks) points[this.ticks % POINTS] = NaN;
      if (this.ticks - lastAt >= POINTS) this.series.delete(name);
    }
  }

  /** Names of the series that have had a value in ten minutes. */
  get names(): string[] {
    return [...this.series.keys()];
  }

  /** Points of a series, oldest first, with NaN for gaps. */
  points(name: string): number[] {
    const points = this.series.get(name)?.points;
    if (!points) return [];
    const next = (this.ticks + 1) % POINTS;
    return [...points.subarray(next), ...points.subarray(0, next)];
  }

  /** Its last point; NaN for a gap. */
  last(name: string): number {
    return this.series.get(name)?.points[this.ticks % POINTS] ?? NaN;
  }

  private begin(name: string) {
    if (this.series.size >= this.most) {
      this.refused++;
      return undefined;
    }
    const one = { points: new Float64Array(POINTS).fill(NaN), lastAt: this.ticks };
    this.series.set(name, one);
    return one;
  }
}
