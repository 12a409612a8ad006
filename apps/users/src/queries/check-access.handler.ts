import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { DEFAULT_ACCESS } from '@app/contracts/access';
import { CheckAccess, CheckAccessRequest, type AccessLevel, type CheckAccessResult } from '@app/contracts/access.check';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { AccessRepository, type Access } from '../db/access.repository';

/** Says whether a user may open a document, and why. */
@Controller()
export class CheckAccessHandler {
  constructor(private readonly access: AccessRepository) {}

  @MessagePattern(CheckAccess.pattern)
  async checkAccess(@Payload() request: CheckAccessRequest, @Ctx() { apiKey }: DeliveryContext): Promise<CheckAccessResult> {
    const found = await this.access.find(apiKey, request.organizationId, request.documentId, request.userId);
    const level = found && levelOf(found);
    return { allowed: level !== undefined, ...(level && { level }) };
  }
}

/** Whoever was added to a document or its folder may open it whatever its access type is: that one is about all the others. */
function levelOf({ ofDocument, ofFolder, ofOrganization, access = DEFAULT_ACCESS }: Access): AccessLevel | undefined {
  if (ofDocument) return 'document';
  if (ofFolder) return 'folder';
  if (ofOrganization && access !== 'restricted') return 'organization';
  return access === 'public' ? 'public' : undefined;
}
