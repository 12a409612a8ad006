import { callsInFlight } from './metrics';

/** Calls between their authentication and the end of their response. */
export class InFlight {
  private calls = 0;

  constructor(private readonly max: number) {}

  get count(): number {
    return this.calls;
  }

  /** @returns false when there is no room */
  enter(): boolean {
    if (this.calls >= this.max) return false;
    callsInFlight.set(++this.calls);
    return true;
  }

  leave(): void {
    callsInFlight.set(--this.calls);
  }
}
