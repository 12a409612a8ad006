import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { UserAdded, UserAddedEvent } from '@app/contracts/events.users';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { MembersRepository } from '../db/members.repository';
import { observeCopied } from '../metrics';

/** Copies the memberships of added users. */
@Controller()
export class CopyMembersOnUserAdded {
  constructor(private readonly members: MembersRepository) {}

  @MessagePattern(UserAdded.type)
  async copy(@Payload() { data, time }: UserAddedEvent, @Ctx() { apiKey }: DeliveryContext): Promise<void> {
    const { organizationId, folderId, documentId, users } = data;
    const membership =
      documentId !== undefined
        ? ({ level: 'document', id: documentId } as const)
        : folderId !== undefined
          ? ({ level: 'folder', id: folderId } as const)
          : ({ level: 'organization', id: '' } as const);
    const userIds = users.map(({ userId }) => userId);
    await this.members.add(apiKey, organizationId, membership, userIds);
    observeCopied(UserAdded.type, data, time);
  }
}
