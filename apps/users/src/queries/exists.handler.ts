import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { Exists, ExistsRequest, type ExistsResult } from '@app/contracts/users.exists';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { OrganizationsRepository } from '../db/organizations.repository';

/** Checks whether the API key, an organization and a document exist. */
@Controller()
export class ExistsHandler {
  constructor(private readonly organizations: OrganizationsRepository) {}

  @MessagePattern(Exists.pattern)
  async exists(@Payload() request: ExistsRequest, @Ctx() context: DeliveryContext): Promise<ExistsResult> {
    return this.organizations.find(context.apiKey, request.organizationId, request.documentId);
  }
}
