import { LRUCache } from 'lru-cache';
import { LIGHT } from './scheduled-work';

const MAX_NAMES = 10_000;
/** After less work the recent cost falls to no less than this fraction, because one small page says little about the next one. */
const FORGETTING = 0.7;
/** The largest cost counts for one to two such times. By number of answers it could be talked down with many that are empty. */
const REMEMBERED_MS = 10_000;

/**
 * Most work of unknown cost that begins as light, for some time after such work was heavy: that of many tenants may be heavy, and must leave places
 * for light work. Usually it is light, and then it has all places.
 */
const MOST_TRIED = 3;
const SURPRISED_MS = 10_000;

interface Costs {
  recent: number;
  /** The largest since the moment `since`, and the largest of the time before it. */
  largest: number;
  before: number;
  since: number;
  /** Time of the latest. */
  at: number;
}

/** The costs that are expected of the next work, by the costs of the latest work of the same name. */
export class ExpectedCosts {
  private readonly costs = new LRUCache<string, Costs>({ max: MAX_NAMES });
  /** Names of unknown cost of which one piece of work finds it out. */
  private readonly tried = new Set<string>();
  /** When work of unknown cost was heavy, in milliseconds of `performance.now()`. */
  private surprisedAt = -Infinity;

  /** The recent cost, for what has no neighbours: light work between two large pieces should be as fast as it is. */
  recent(name: string): number | undefined {
    return this.costs.get(name)?.recent;
  }

  /**
   * The largest cost of the last ten seconds or more, for what neighbours could suffer from. undefined after 20 s without work if that was light: what
   * comes now may be heavy, and would begin in many places at once.
   */
  largest(name: string): number | undefined {
    const costs = this.costs.get(name);
    const now = performance.now();
    return costs && !isForgotten(costs, now) ? Math.max(costs.recent, largestOf(costs, now)) : undefined;
  }

  /** Whether work of unknown cost may begin as light. Work that begins beside it would say nothing more. */
  mayTry(name: string): boolean {
    if (this.tried.has(name)) return false;
    return this.tried.size < MOST_TRIED || performance.now() - this.surprisedAt > SURPRISED_MS;
  }

  /** Work begins. @returns whether it finds out the cost; then call {@link endTry} once, when it has ended */
  try(name: string): boolean {
    const isTried = this.largest(name) === undefined && this.mayTry(name);
    if (isTried) this.tried.add(name);
    return isTried;
  }

  endTry(name: string): void {
    this.tried.delete(name);
    if ((this.recent(name) ?? LIGHT) > LIGHT) this.surprisedAt = performance.now();
  }

  /** @returns whether the next work is heavy or light since this one */
  add(name: string, cost: number): boolean {
    const now = performance.now();
    const known = this.costs.get(name);
    if (!known) {
      this.costs.set(name, { recent: cost, largest: cost, before: 0, since: now, at: now });
      return true;
    }
    // 0: light. 1: heavy beside others. 2: heavy in any case.
    const heaviness = () => Number(known.recent > LIGHT) + Number(Math.max(known.recent, largestOf(known, now)) > LIGHT);
    const before = isForgotten(known, now) ? undefined : heaviness();
    known.at = now;
    known.recent = Math.max(cost, known.recent * FORGETTING);
    const age = now - known.since;
    if (age > REMEMBERED_MS)
      Object.assign(known, { before: age > 2 * REMEMBERED_MS ? 0 : known.largest, largest: cost, since: now });
    else known.largest = Math.max(known.largest, cost);
    return before !== heaviness();
  }
}

const isForgotten = ({ recent, at }: Costs, now: number): boolean => recent <= LIGHT && now - at > 2 * REMEMBERED_MS;

function largestOf({ largest, before, since }: Costs, now: number): number {
  const age = now - since;
  if (age > 2 * REMEMBERED_MS) return 0;
  return age > REMEMBERED_MS ? largest : Math.max(largest, before);
}
