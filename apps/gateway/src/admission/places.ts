import { KINDS, type Kind } from './kinds';
import { callsInFlight, callsInFlightLimit } from '../server/metrics';
import { SettledKeys } from './settled-keys';
import { Shares, type Met } from './shares';

/** A kind may hold 1.5 times the free places: 60 % of all if it is the only one, three eighths each if there are two. */
const OF_WHAT_IS_FREE = 1.5;

/** This part of what a kind may hold now is for keys that have been answered for some time: a flood of new keys must not interrupt them. */
const FOR_SETTLED_KEYS = 0.08;

/**
 * Places for calls in flight. They are shared first by kind, so that reads find places while all writes hang and vice versa, then by API key. Both
 * use the same rule, see {@link Shares}.
 */
export class Places {
  private readonly kinds: Readonly<Record<string, Shares>>;
  private readonly settled = new SettledKeys();
  private taken = 0;

  constructor(private readonly max: number) {
    callsInFlightLimit.set(max);
    this.kinds = Object.fromEntries(KINDS.map((kind) => [kind, sharesOf(kind, max)]));
  }

  /** The reason why a key cannot have one more place of a kind; undefined when it can. */
  problem(kind: Kind, apiKey: string): Met | undefined {
    const free = this.free(kind);
    const met = this.kinds[kind].problem(apiKey, 1, free);
    return !met && this.isReserved(kind, free) && !this.settled.has(apiKey) ? 'all' : met;
  }

  /** @returns the reason why there is no place; undefined when it was taken */
  take(kind: Kind, apiKey: string): Met | undefined {
    const met = this.problem(kind, apiKey);
    if (met) return met;
    this.kinds[kind].add(apiKey, 1);
    this.taken++;
    return undefined;
  }

  give(kind: Kind, apiKey: string): void {
    this.kinds[kind].give(apiKey, 1);
    this.taken--;
  }

  /** A call of the key had its turn, and is answered. */
  answered(apiKey: string): void {
    this.settled.answered(apiKey);
  }

  /** Whether the key has been answered for some time. */
  isSettled(apiKey: string): boolean {
    return this.settled.has(apiKey);
  }

  /** Whether no call of this kind would find a place, from any key. */
  isFull(kind: Kind): boolean {
    return this.free(kind) < 1;
  }

  /** Whether some key may be over its share of the kind. This is so whenever the last places are reserved. */
  isUneven(kind: Kind): boolean {
    return this.kinds[kind].isUneven(this.free(kind));
  }

  private isReserved(kind: Kind, free: number): boolean {
    return free <= FOR_SETTLED_KEYS * (this.kinds[kind].all + free);
  }

  /** Number of places that the kind may still take until it has its share. */
  private free(kind: Kind): number {
    return Math.ceil((OF_WHAT_IS_FREE * (this.max - this.taken) - this.kinds[kind].all) / (1 + OF_WHAT_IS_FREE));
  }
}

function sharesOf(kind: Kind, max: number): Shares {
  const gauge = callsInFlight.labels(kind);
  return new Shares(max, (held) => gauge.set(held));
}
