import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { ApiError } from '@app/contracts/error';
import {
  ListMemberships,
  ListMembershipsRequest,
  MEMBERSHIPS_PAGE,
  type ListMembershipsResult,
} from '@app/contracts/memberships.list';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { AccessRepository } from '../db/access.repository';

/** Reads a page of a user's memberships. */
@Controller()
export class ListMembershipsHandler {
  constructor(private readonly access: AccessRepository) {}

  @MessagePattern(ListMemberships.pattern)
  async listMemberships(
    @Payload() { organizationId, userId, afterLevel, afterId = '' }: ListMembershipsRequest,
    @Ctx() context: DeliveryContext,
  ): Promise<ListMembershipsResult> {
    const { apiKey, deadline } = context;
    const user = { apiKey, organizationId, userId };
    let after = afterLevel && { level: afterLevel, id: afterId };
    for (;;) {
      const { memberships, left, lookedTo, rows } = await this.access.memberships(user, { after, limit: MEMBERSHIPS_PAGE });
      context.rows = (context.rows ?? 0) + rows;
      // A page without a membership would have no end at which the next one can begin.
      if (memberships.length > 0 || !lookedTo)
        return { memberships, more: lookedTo !== undefined, ...(left !== undefined && { left }) };
      if (deadline !== undefined && Date.now() >= deadline)
        throw new ApiError('UNAVAILABLE', 'The memberships could not be read in time.');
      after = lookedTo;
    }
  }
}
