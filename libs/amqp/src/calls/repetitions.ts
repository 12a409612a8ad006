import type { Request } from '../messages/message-properties';

/** A slow service must not be asked twice as much: of queries that are only slow, this share is asked again. */
const REPEATED_SHARE = 0.1;
const MOST_TOKENS = 10;
/** One tenant with slow queries must not use up that share: of its queries that wait for an answer, this number is asked again. */
const MOST_OF_KEY = 2;
/** The same while queries are known to get lost: a consumer of several stands still, and keeps each one that is delivered to it. */
const MOST_OF_KEY_IN_LOSS = 16;
const LOSS_MS = 5000;

/** Limits how many slow queries are asked again. A query without an API key is a question of a process itself. */
export class Repetitions {
  private tokens = MOST_TOKENS;
  /** In milliseconds of `performance.now()`. */
  private helpedAt = -Infinity;
  /** Correlation ids of queries that were asked again and wait for an answer, by API key. */
  private readonly ofKey = new Map<string, Set<string>>();

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

  /** A later copy was answered before the first one: the first was lost, and the service is not slow. @param taken how often it was asked again */
  helped(taken: number): void {
    this.tokens = Math.min(MOST_TOKENS, this.tokens + taken);
    this.helpedAt = performance.now();
  }

  /** The query does not wait any more. */
  ended({ correlationId, options: { apiKey } }: Request): void {
    const ids = apiKey === undefined ? undefined : this.ofKey.get(apiKey);
    if (ids?.delete(correlationId) && ids.size === 0) this.ofKey.delete(apiKey as string);
  }
}
