import { LRUCache } from 'lru-cache';
import { ApiError } from '@app/contracts/error';
import { countLookup } from '@app/runtime/metrics';
import type { DeliveryContext } from '../delivery/delivery-context';

/** How long an answer is cached, in milliseconds: as long as a revoked token stays valid. */
const TTL_MS = 5000;
const MAX_ENTRIES = 10_000;

export interface PublisherRules {
  /** Broker accounts that may name any tenant, besides the service's own: the other services, which have checked the tenant already. */
  trusted: readonly string[];
  /**
   * Whether another account may act for a tenant.
   *
   * @param publisher its broker account; empty when the message has no user_id
   * @throws ApiError UNAVAILABLE when the grant cannot be checked now
   */
  isGranted(publisher: string, apiKey: string, context: { requestId: string }): Promise<boolean>;
}

/** Checks whether a publisher may act for a tenant. `user_id` can be trusted: the broker refuses a message that names another account. */
export class PublisherRights {
  private readonly trusted: ReadonlySet<string>;
  // Many messages of one publisher arrive at once: they share one question.
  private readonly answers: LRUCache<string, { granted: boolean }, DeliveryContext>;

  constructor(rules: PublisherRules, ownAccount: string) {
    this.trusted = new Set([...rules.trusted, ownAccount]);
    this.answers = new LRUCache({
      max: MAX_ENTRIES,
      ttl: TTL_MS,
      fetchMethod: async (_, __, { context }) => ({
        granted: await rules.isGranted(context.userId ?? '', context.apiKey, context),
      }),
    });
  }

  /** @throws ApiError PERMISSION_DENIED; UNAVAILABLE when the grant cannot be checked now */
  async require(context: DeliveryContext): Promise<void> {
    const { userId, apiKey } = context;
    if (userId !== undefined && this.trusted.has(userId)) return;
    const key = JSON.stringify([userId, apiKey]);
    countLookup('grants', this.answers.has(key));
    const answer = await this.answers.fetch(key, { context });
    if (answer?.granted) return;
    throw new ApiError(
      'PERMISSION_DENIED',
      userId === undefined
        ? 'A message without user_id may not act for this API key.'
        : `The broker account "${userId}" may not act for this API key.`,
    );
  }
}
