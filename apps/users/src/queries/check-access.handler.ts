import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { DEFAULT_ACCESS } from '@app/contracts/access';
import { CheckAccess, CheckAccessRequest, type AccessLevel, type CheckAccessResult } from '@app/contracts/access.check';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { AccessRepository, type Access } from '../db/access.repository';

/** Checks whether a user may open a document, and names the level that allows it. */
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

/** Users added to the document or its folder may always open it. The access type applies to all other users. */
function levelOf({ ofDocument, ofFolder, ofOrganization, access = DEFAULT_ACCESS }: Access): AccessLevel | undefined {
  if (ofDocument) return 'document';
  if (ofFolder) return 'folder';
  if (ofOrganization && access !== 'restricted') return 'organization';
  return access === 'public' ? 'public' : undefined;
}
