/** For this time after its start, light work is protected from heavy work of other owners. */
const PROTECTED_MS = 1000;

/** The owners of the latest light work. Times are in milliseconds of `performance.now()`. */
export class LightWork {
  /** The last two owners of light work: one of them is another one than any given one. */
  private last?: { owner: string; at: number };
  private before?: { owner: string; at: number };

  constructor(private readonly protectedMs = PROTECTED_MS) {}

  started(owner: string | undefined, at: number): void {
    if (owner === undefined) return;
    if (this.last?.owner === owner) this.last.at = at;
    else [this.before, this.last] = [this.last, { owner, at }];
  }

  /** Whether light work of another owner came just before. */
  isBeside(owner: string | undefined, now: number): boolean {
    return [this.last, this.before].some(
      (light) => light !== undefined && light.owner !== owner && now - light.at <= this.protectedMs,
    );
  }
}
