import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { ListMemberships, type Membership } from '@app/contracts/memberships.list';
import type { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { askUsers } from './ask-users';
import { MembersRepository } from '../db/members.repository';

/** So long after a copy is distrusted reads may still take it as it is. */
export const TRUST_MS = 5000;

/** Where users were added to: from the copy, which events keep, and for a user who is not in it yet asked of the users service. */
@Injectable()
export class Members {
  // Memberships are only added, and events tell of that: what is complete stays complete, unless the copy is rebuilt.
  private readonly complete = new LRUCache<string, true>({ max: 100_000, ttl: TRUST_MS });

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
    if (this.complete.has(key)) return;
    const { complete, matters } = await this.members.find(apiKey, organizationId, userId);
    if (complete) this.complete.set(key, true);
    if (complete || !matters) return;
    // Read before the question: what was copied by then, and is not in the answer, is wrong.
    const copied = await this.members.copied(apiKey, organizationId, userId);
    const memberships = await this.ask(organizationId, userId, context);
    const right = new Set(memberships.map(({ level, id }) => `${level} ${id}`));
    const wrong = copied.filter(({ level, id }) => !right.has(`${level} ${id}`));
    // Nobody has added the user yet: the next read asks again.
    if (memberships.length === 0 && wrong.length === 0) return;
    await this.members.complete(apiKey, organizationId, userId, { memberships, wrong });
    this.complete.set(key, true);
  }

  private async ask(organizationId: string, userId: string, context: DeliveryContext): Promise<Membership[]> {
    const found: Membership[] = [];
    for (;;) {
      const last = found.at(-1);
      const request = { organizationId, userId, ...(last && { afterLevel: last.level, afterId: last.id }) };
      const { memberships, more } = await askUsers(this.client, ListMemberships, request, context);
      found.push(...memberships);
      if (!more) return found;
    }
  }
}
