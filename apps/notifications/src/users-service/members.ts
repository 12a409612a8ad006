import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { ListMemberships, type ListMembershipsResult, type Membership } from '@app/contracts/memberships.list';
import type { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { countLookup } from '@app/runtime/metrics';
import { askUsers } from './ask-users';
import { MembersRepository } from '../db/members.repository';

/** Milliseconds during which reads may still use a copy after it was marked as not trusted. */
export const TRUST_MS = 5000;

/**
 * A question to the users service costs a read as much as looking at so many rows: two more statements here, one there, and two messages. Four such
 * reads of a tenant are at work in a process beside light work of others.
 */
export const ROWS_OF_QUESTION = 4000;

type Answer = Pick<ListMembershipsResult, 'memberships' | 'left'>;

/** Memberships of users. Events keep the copy current; the memberships of a user who is not copied yet are fetched from the users service. */
@Injectable()
export class Members {
  // Each addition and each removal arrives as an event. So a complete user stays complete until the copy is rebuilt.
  private readonly complete = new LRUCache<string, true>({ max: 100_000, ttl: TRUST_MS });

  constructor(
    private readonly members: MembersRepository,
    private readonly client: RabbitClient,
  ) {}

  /**
   * Makes sure that all memberships of a user are copied, so that a caller who has added a user sees it in the next read, before the event arrives.
   *
   * @throws ApiError UNAVAILABLE when the users service does not answer
   */
  async requireComplete(organizationId: string, userId: string, context: DeliveryContext): Promise<void> {
    const { apiKey } = context;
    const key = JSON.stringify([apiKey, organizationId, userId]);
    if (countLookup('members', this.complete.has(key))) return;
    const { complete, matters } = await this.members.find(apiKey, organizationId, userId);
    if (complete) this.complete.set(key, true);
    if (complete || !matters) return;
    // Read before the question: a membership copied by then and missing in the answer is wrong. A later one may come from an event.
    const known = await this.members.known(apiKey, organizationId, userId);
    context.rows = (context.rows ?? 0) + ROWS_OF_QUESTION;
    const { memberships, left } = await this.ask(organizationId, userId, context);
    const right = new Set(memberships.map(({ level, id }) => `${level} ${id}`));
    const wrong = known.filter(({ live, level, id }) => live && !right.has(`${level} ${id}`));
    // The user has never been added: the next read asks again.
    if (known.length === 0 && memberships.length === 0 && left === undefined) return;
    await this.members.complete(apiKey, organizationId, userId, { memberships, left, wrong });
    this.complete.set(key, true);
  }

  private async ask(organizationId: string, userId: string, context: DeliveryContext): Promise<Answer> {
    const found: Membership[] = [];
    for (;;) {
      const last = found.at(-1);
      const request = { organizationId, userId, ...(last && { afterLevel: last.level, afterId: last.id }) };
      const { memberships, more, left } = await askUsers(this.client, ListMemberships, request, context);
      found.push(...memberships);
      // The last page has the greatest version.
      if (!more) return { memberships: found, left };
    }
  }
}
