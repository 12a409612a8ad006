import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { ListContacts, ListContactsRequest, type Contact, type ListContactsResult } from '@app/contracts/contacts.list';
import { LIMITS } from '@app/contracts/fields';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { AccessRepository, type StoredContact } from '../db/access.repository';
import { levelOf } from '../db/level';

/** Reads a page of a contact list. */
@Controller()
export class ListContactsHandler {
  constructor(private readonly access: AccessRepository) {}

  @MessagePattern(ListContacts.pattern)
  async listContacts(@Payload() request: ListContactsRequest, @Ctx() context: DeliveryContext): Promise<ListContactsResult> {
    const { apiKey } = context;
    const { after, pageSize = LIMITS.listLength } = request;
    const level = levelOf({ documentId: request.documentId });
    const { users, next, rows } = await this.access.contacts(
      { apiKey, organizationId: request.organizationId, level },
      { after, pageSize },
    );
    context.rows = rows;
    return { users: users.map(toContact), ...(next !== undefined && { next }) };
  }
}

const toContact = ({ userId, name, email, initial }: StoredContact): Contact => ({
  userId,
  ...(name !== null && { name }),
  ...(email !== null && { email }),
  ...(initial !== null && { initial }),
});
