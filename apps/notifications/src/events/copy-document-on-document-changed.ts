import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { DocumentChanged } from '@app/contracts/events.users';
import { DocumentChangedEvent } from '@app/contracts/handled-events';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { MembersRepository } from '../db/members.repository';
import { observeCopied } from '../metrics';

/** Copies the folder and access type of a changed document, unless the copy is newer already. */
@Controller()
export class CopyDocumentOnDocumentChanged {
  constructor(private readonly members: MembersRepository) {}

  @MessagePattern(DocumentChanged.type)
  async copy(@Payload() { data, time }: DocumentChangedEvent, @Ctx() { apiKey }: DeliveryContext): Promise<void> {
    const { organizationId, ...document } = data;
    await this.members.setDocument(apiKey, organizationId, document);
    observeCopied(DocumentChanged.type, data, time);
  }
}
