import { LRUCache } from 'lru-cache';
import type { Verdict } from '@app/contracts/users.authenticate';

const MAX_ENTRIES = 10_000;

/** A verdict, and the time of its question: later changes are not in it. */
export interface KnownVerdict {
  apiKey: string;
  verdict: Verdict;
  askedAt: number;
}

/** Verdicts by the cache key of the credentials. Accepted and refused ones are separate, so that a flood of wrong tokens cannot evict good ones. */
export class VerdictCache {
  private readonly right = new LRUCache<string, KnownVerdict>({ max: MAX_ENTRIES });
  private readonly wrong = new LRUCache<string, KnownVerdict>({ max: MAX_ENTRIES });

  get(cacheKey: string): KnownVerdict | undefined {
    return this.right.get(cacheKey) ?? this.wrong.get(cacheKey);
  }

  set(cacheKey: string, known: KnownVerdict): void {
    const [to, from] = known.verdict === 'refused' ? [this.wrong, this.right] : [this.right, this.wrong];
    from.delete(cacheKey);
    to.set(cacheKey, known);
  }

  /** Forgets all verdicts of a key. It scans all entries, because revocations are rare. */
  forget(apiKey: string): void {
    for (const verdicts of [this.right, this.wrong]) {
      for (const [cacheKey, known] of [...verdicts.entries()]) if (known.apiKey === apiKey) verdicts.delete(cacheKey);
    }
  }
}
