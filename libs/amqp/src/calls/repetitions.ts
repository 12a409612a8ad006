import type { Request } from '../messages/message-properties';
import type { Query } from './query';

/** A slow service must not be asked twice as much: of queries that are only slow, this share is asked again. */
const REPEATED_SHARE = 0.1;
const MOST_TOKENS = 10;
/** One tenant with slow queries must not use up that share: of its queries that wait for an answer, this number is asked again. */
const MOST_OF_KEY = 2;
/** The same while queries are known to get lost: a consumer of several stands still, and keeps each one that is delivered to it. */
const MOST_OF_KEY_IN_LOSS = 16;
const LOSS_MS = 5000;
/** Patterns, and pairs of a pattern and an API key, whose answers are remembered. All are forgotten at once: a query then counts as slow. */
const MOST_FLOWS = 10_000;

/** Limits how many slow queries are asked again. A query without an API key is a question of a process itself. */
export class Repetitions {
  private tokens = MOST_TOKENS;
  /** In milliseconds of `performance.now()`. */
  private helpedAt = -Infinity;
  /** Correlation ids of queries that were asked again and wait for an answer, by API key. */
  private readonly ofKey = new Map<string, Set<string>>();
  /** The latest time at which a query was asked whose first copy was answered, by pattern, and by pattern and API key. */
  private readonly latestAnswered = new Map<string, number>();

  /** A query was asked for the first time. */
  asked(): void {
    this.tokens = Math.min(MOST_TOKENS, this.tokens + REPEATED_SHARE);
  }

  /** @returns whether the query may be asked again */
  take({ correlationId, options: { apiKey } }: Request): boolean {
    const ids = (apiKey !== undefined && this.ofKey.get(apiKey)) || new Set();
    const most = performance.now() - this.helpedAt < LOSS_MS ? MOST_OF_KEY_IN_LOSS : MOST_OF_KEY;
    if (this.tokens < 1 || (ids.size >= most && !ids.has(correlationId))) return false;
    this.tokens--;
    if (apiKey !== undefined) this.ofKey.set(apiKey, ids.add(correlationId));
    return true;
  }

  /** The first copy of the query was answered. */
  answered({ operation: { pattern }, options: { apiKey }, askedAt }: Query): void {
    if (this.latestAnswered.size >= MOST_FLOWS) this.latestAnswered.clear();
    for (const flow of [pattern, `${pattern} ${apiKey}`])
      this.latestAnswered.set(flow, Math.max(askedAt, this.latestAnswered.get(flow) ?? -Infinity));
  }

  /**
   * A later copy of the query was answered before the first one. A backlog does that, too, because the standby queue may be shorter. The first copy
   * was lost when the first queue answered a query that was asked later. Services let keys take turns, so only a later query of its own key raises
   * the limit of keys.
   *
   * @param passedItsOwn whether another copy of it was in the standby queue before the one that was answered: that one was lost
   */
  helped({ operation: { pattern }, options: { apiKey }, askedAt, repetitions }: Query, passedItsOwn = false): void {
    const isPassed = (flow: string) => passedItsOwn || (this.latestAnswered.get(flow) ?? -Infinity) > askedAt;
    if (isPassed(pattern)) this.tokens = Math.min(MOST_TOKENS, this.tokens + repetitions);
    if (isPassed(`${pattern} ${apiKey}`)) this.helpedAt = performance.now();
  }

  /** The query does not wait any more. */
  ended({ correlationId, options: { apiKey } }: Request): void {
    const ids = apiKey === undefined ? undefined : this.ofKey.get(apiKey);
    if (ids?.delete(correlationId) && ids.size === 0) this.ofKey.delete(apiKey as string);
  }
}
