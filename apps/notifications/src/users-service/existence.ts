import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { ApiError } from '@app/contracts/error';
import { Exists, type ExistsRequest, type ExistsResult } from '@app/contracts/users.exists';
import type { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { askUsers, QUESTION_TIMEOUT_MS } from './ask-users';
import { Questions } from './questions';
import { countLookup } from '@app/runtime/metrics';
import { runIn } from '@app/tracing/tracing';
import { OrganizationsRepository } from '../db/organizations.repository';

/** Checks that tenants, organizations and documents exist: first in this service's own tables, then in the users service. */
@Injectable()
export class Existence {
  // API keys are never deleted, so a known tenant stays known.
  private readonly knownTenants = new LRUCache<string, true>({ max: 10_000 });
  private readonly questions = new Questions();

  constructor(
    private readonly organizations: OrganizationsRepository,
    private readonly client: RabbitClient,
  ) {}

  /**
   * Checks that the API key was issued. A publisher may send any string, and an unknown key must not create a tenant.
   *
   * @throws ApiError UNAUTHENTICATED; UNAVAILABLE when the key cannot be checked now
   */
  async requireTenant(context: DeliveryContext): Promise<void> {
    if (countLookup('tenants', this.knownTenants.has(context.apiKey))) return;
    if (!(await runIn(context.span, () => this.organizations.hasTenant(context.apiKey)))) {
      const { apiKey } = await this.ask({}, context);
      if (!apiKey) throw new ApiError('UNAUTHENTICATED', 'The API key is unknown.');
    }
    this.knownTenants.set(context.apiKey, true);
  }

  /** @throws ApiError NOT_FOUND; UNAVAILABLE when existence cannot be checked now */
  async require(
    needed: { organizationId: string; documentId: string; organization: boolean; document: boolean },
    context: DeliveryContext,
  ): Promise<void> {
    const { organizationId, documentId } = needed;
    const missing = (found: { organization: boolean; document: boolean }) =>
      needed.organization && !found.organization
        ? 'The organization does not exist.'
        : needed.document && !found.document
          ? 'The document does not exist.'
          : undefined;

    const own = await runIn(context.span, () => this.organizations.find(context.apiKey, organizationId, documentId));
    if (!missing(own)) return;
    const users = await this.ask({ organizationId, documentId }, context);
    const problem = missing({
      organization: own.organization || users.organization,
      document: own.document || users.document,
    });
    if (problem) throw new ApiError('NOT_FOUND', problem);
  }

  /** Equal questions are asked each: an answer to an earlier one may be older than what the caller has created since. */
  private async ask(request: ExistsRequest, context: DeliveryContext): Promise<ExistsResult> {
    const ask = () => askUsers(this.client, Exists, request, context);
    // Without a caller that waits, each failure is one of a few attempts, and the lane of the command has messages of its own.
    if (!context.awaited) return ask();
    // Not in a turn: after a start the first ones would keep all turns until the connection is up.
    await this.client.whenReady(QUESTION_TIMEOUT_MS);
    return this.questions.ask(context.apiKey, ask);
  }
}
