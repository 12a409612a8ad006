import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
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
    @Ctx() { apiKey }: DeliveryContext,
  ): Promise<ListMembershipsResult> {
    const after = afterLevel && { level: afterLevel, id: afterId };
    const { memberships, left } = await this.access.memberships(
      { apiKey, organizationId, userId },
      { after, limit: MEMBERSHIPS_PAGE + 1 },
    );
    return {
      memberships: memberships.slice(0, MEMBERSHIPS_PAGE),
      more: memberships.length > MEMBERSHIPS_PAGE,
      ...(left !== undefined && { left }),
    };
  }
}
