/** For this time after its start, light work is protected from heavy work of other flows. */
const PROTECTED_MS = 1000;

/** Remembers the latest light work, in milliseconds of `performance.now()`. */
export class LightWork<Flow> {
  /** The last two flows with light work: one of them is another flow than any given one. */
  private last?: { flow: Flow; at: number };
  private before?: { flow: Flow; at: number };

  started(flow: Flow, at: number): void {
    if (this.last?.flow === flow) this.last.at = at;
    else [this.before, this.last] = [this.last, { flow, at }];
  }

  /** Whether light work of another flow came just before. */
  isBeside(flow: Flow, now: number): boolean {
    return [this.last, this.before].some((light) => light !== undefined && light.flow !== flow && now - light.at <= PROTECTED_MS);
  }
}
