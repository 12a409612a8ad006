import { LRUCache } from 'lru-cache';
import { KINDS, type Kind } from './kinds';
import { callsInFlight, callsInFlightLimit } from '../server/metrics';
import { Shares, type Met } from './shares';

/** A kind may hold 1.5 times the free places: 60 % of all if it is the only one, three eighths each if there are two. */
const OF_WHAT_IS_FREE = 1.5;

/** This part of the places, for each kind, is for keys that were answered just before: many new callers at once must not interrupt them. */
const FOR_STEADY_KEYS = 0.05;
const STEADY_MS = 1000;
const MAX_KEYS = 10_000;

/**
 * Places for calls in flight. They are shared first by kind, so that reads find places while all writes hang and vice versa, then by API key. Both
 * use the same rule, see {@link Shares}.
 */
export class Places {
  private readonly kinds: Readonly<Record<string, Shares>>;
  /** Keys that were answered just before. */
  private readonly steady = new LRUCache<string, true>({ max: MAX_KEYS, ttl: STEADY_MS });
  private readonly reserved: number;
  private taken = 0;

  constructor(private readonly max: number) {
    callsInFlightLimit.set(max);
    this.reserved = Math.floor(max * FOR_STEADY_KEYS);
    this.kinds = Object.fromEntries(KINDS.map((kind) => [kind, sharesOf(kind, max)]));
  }

  /** The reason why a key cannot have one more place of a kind; undefined when it can. */
  problem(kind: Kind, apiKey: string): Met | undefined {
    const free = this.free(kind);
    const met = this.kinds[kind].problem(apiKey, 1, free);
    return !met && free <= this.reserved && !this.steady.has(apiKey) ? 'all' : met;
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
    this.steady.set(apiKey, true);
  }

  /** Whether no call of this kind would find a place, from any key. */
  isFull(kind: Kind): boolean {
    return this.free(kind) < 1;
  }

  /** Whether some key may not have one more place of the kind: it is over its share, or is new. */
  isUneven(kind: Kind): boolean {
    const free = this.free(kind);
    return free <= this.reserved || this.kinds[kind].isUneven(free);
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
