import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { ApiError } from '@app/contracts/error';
import { ListMemberships, type Membership } from '@app/contracts/memberships.list';
import type { DeliveryContext } from '@app/rabbitmq/delivery-context';
import { RabbitClient } from '@app/rabbitmq/rabbit.client';
import { MembersRepository } from './db/members.repository';

const QUESTION_TIMEOUT_MS = 2000;

/** Where users were added to: from the copy, which events keep, and for a user who is not in it yet asked of the users service. */
@Injectable()
export class Members {
  // Memberships are only added, and events tell of that: what is complete stays complete.
  private readonly complete = new LRUCache<string, true>({ max: 100_000 });

  constructor(
    private readonly members: MembersRepository,
    private readonly client: RabbitClient,
  ) {}

  /**
   * Whoever was answered that a user is added finds it in the very next read, events or not.
   *
   * @throws ApiError UNAVAILABLE when that cannot be known now
   */
  async requireComplete(organizationId: string, userId: string, context: DeliveryContext): Promise<void> {
    const { apiKey } = context;
    const key = JSON.stringify([apiKey, organizationId, userId]);
    if (this.complete.has(key) || !(await this.members.isIncomplete(apiKey, organizationId, userId))) return;
    const memberships = await this.ask(organizationId, userId, context);
    // Nobody has added the user yet: the next read asks again.
    if (memberships.length === 0) return;
    await this.members.complete(apiKey, organizationId, userId, memberships);
    this.complete.set(key, true);
  }

  private async ask(organizationId: string, userId: string, { apiKey, requestId }: DeliveryContext): Promise<Membership[]> {
    const found: Membership[] = [];
    try {
      for (;;) {
        const last = found.at(-1);
        const request = { organizationId, userId, ...(last && { afterLevel: last.level, afterId: last.id }) };
        const answer = await this.client.call(ListMemberships, request, { apiKey, requestId, timeoutMs: QUESTION_TIMEOUT_MS });
        const { memberships, more } = answer.parse();
        found.push(...memberships);
        if (!more) return found;
      }
    } catch (error) {
      // Nothing was changed: an unanswered question is no unknown outcome.
      throw new ApiError('UNAVAILABLE', 'The users service is unavailable.', undefined, { cause: error });
    }
  }
}
