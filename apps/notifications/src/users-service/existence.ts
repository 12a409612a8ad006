import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { ApiError } from '@app/contracts/error';
import { Exists } from '@app/contracts/users.exists';
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
  // A known tenant stays known: an API key is deleted with all of its tenant, when nobody publishes for it any more.
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
      const isKnown = await this.inTurn(context, () => this.isIssued(context));
      if (!isKnown) throw new ApiError('UNAUTHENTICATED', 'The API key is unknown.');
    }
    this.knownTenants.set(context.apiKey, true);
  }

  /** The first calls of a new tenant come together: those that have waited for their turn need not ask again. */
  private async isIssued(context: DeliveryContext): Promise<boolean> {
    if (this.knownTenants.has(context.apiKey)) return true;
    const { apiKey } = await askUsers(this.client, Exists, {}, context);
    // Before the next one has its turn.
    if (apiKey) this.knownTenants.set(context.apiKey, true);
    return apiKey;
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
    // Each asks by itself: an answer to another one may be older than what the caller has created since.
    const users = await this.inTurn(context, () => askUsers(this.client, Exists, { organizationId, documentId }, context));
    const problem = missing({
      organization: own.organization || users.organization,
      document: own.document || users.document,
    });
    if (problem) throw new ApiError('NOT_FOUND', problem);
  }

  private async inTurn<Answer>(context: DeliveryContext, ask: () => Promise<Answer>): Promise<Answer> {
    // Without a caller that waits, each failure is one of a few attempts, and the lane of the command has messages of its own.
    if (!context.awaited) return ask();
    // Not in a turn: after a start the first ones would keep all turns until the connection is up.
    await this.client.whenReady(QUESTION_TIMEOUT_MS);
    return this.questions.ask(context.apiKey, ask);
  }
}
