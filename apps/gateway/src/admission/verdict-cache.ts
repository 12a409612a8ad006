import { LRUCache } from 'lru-cache';
import type { Verdict } from '@app/contracts/users.authenticate';

const MAX_ENTRIES = 10_000;

/** A verdict, and when its question was asked: it says nothing of later changes. */
export interface KnownVerdict {
  apiKey: string;
  verdict: Verdict;
  askedAt: number;
}

/** Verdicts by the cache key of the credentials. Right tokens live apart from wrong ones: a flood of wrong ones cannot push them out. */
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

  /** Goes through all of them: revocations are rare. */
  forget(apiKey: string): void {
    for (const verdicts of [this.right, this.wrong]) {
      for (const [cacheKey, known] of [...verdicts.entries()]) if (known.apiKey === apiKey) verdicts.delete(cacheKey);
    }
  }
}
