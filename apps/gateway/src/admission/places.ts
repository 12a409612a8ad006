import { KINDS, type Kind } from './kinds';
import { callsInFlight, callsInFlightLimit } from '../server/metrics';
import { Shares, type Met } from './shares';

/** How many times what is free one kind may have: 1.5 is 60 % for the only one, three eighths for each of two. */
const OF_WHAT_IS_FREE = 1.5;

/**
 * Places for calls in flight. First by kind, so that reads find some while the database makes all writes hang, and the other way round; then by
 * API key. The same rule for both, see {@link Shares}.
 */
export class Places {
  private readonly kinds: Readonly<Record<string, Shares>>;
  private taken = 0;

  constructor(private readonly max: number) {
    callsInFlightLimit.set(max);
    this.kinds = Object.fromEntries(KINDS.map((kind) => [kind, sharesOf(kind, max)]));
  }

  /** Why a key cannot have one more place of a kind. */
  problem(kind: Kind, apiKey: string): Met | undefined {
    return this.kinds[kind].problem(apiKey, 1, this.free(kind));
  }

  /** @returns why there is none; undefined when it was taken */
  take(kind: Kind, apiKey: string): Met | undefined {
    const met = this.kinds[kind].take(apiKey, 1, this.free(kind));
    if (!met) this.taken++;
    return met;
  }

  give(kind: Kind, apiKey: string): void {
    this.kinds[kind].give(apiKey, 1);
    this.taken--;
  }

  /** Whether no call of the kind would find a place, whoever it is from. */
  isFull(kind: Kind): boolean {
    return this.free(kind) < 1;
  }

  /** Whether some key may be over its share of the kind. */
  isUneven(kind: Kind): boolean {
    return this.kinds[kind].isUneven(this.free(kind));
  }

  /** How many more of the kind there can be, until it has its share of everything. */
  private free(kind: Kind): number {
    return Math.ceil((OF_WHAT_IS_FREE * (this.max - this.taken) - this.kinds[kind].all) / (1 + OF_WHAT_IS_FREE));
  }
}

function sharesOf(kind: Kind, max: number): Shares {
  const gauge = callsInFlight.labels(kind);
  return new Shares(max, (held) => gauge.set(held));
}
