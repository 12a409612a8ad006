import { LRUCache } from 'lru-cache';
import { ApiError } from '@app/contracts/error';
import type { DeliveryContext } from '../delivery/delivery-context';

/** How long an answer holds: as long as a revoked token does. */
const TTL_MS = 5000;
const MAX_ENTRIES = 10_000;

export interface PublisherRules {
  /** Broker accounts that may name any tenant, beside the service's own: those of the other services, which have asked already. */
  trusted: readonly string[];
  /**
   * Whether another account may act for a tenant.
   *
   * @param publisher empty when the message does not tell
   * @throws ApiError UNAVAILABLE when that cannot be known now
   */
  isGranted(publisher: string, apiKey: string, context: { requestId: string }): Promise<boolean>;
}

/** Who may publish for which tenant. The broker vouches for `user_id`: it refuses a message that names another account than its own. */
export class PublisherRights {
  private readonly trusted: ReadonlySet<string>;
  // Many messages of one publisher arrive at once, and ask once.
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

  /** @throws ApiError PERMISSION_DENIED; UNAVAILABLE when it cannot be known now */
  async require(context: DeliveryContext): Promise<void> {
    const { userId, apiKey } = context;
    if (userId !== undefined && this.trusted.has(userId)) return;
    const answer = await this.answers.fetch(JSON.stringify([userId, apiKey]), { context });
    if (answer?.granted) return;
    throw new ApiError(
      'PERMISSION_DENIED',
      userId === undefined
        ? 'A message without user_id may not act for this API key.'
        : `The broker account "${userId}" may not act for this API key.`,
    );
  }
}
