import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { UserAdded } from '@app/contracts/events.users';
import { UserAddedEvent } from '@app/contracts/handled-events';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { levelOf, MembersRepository } from '../db/members.repository';
import { observeCopied } from '../metrics';

/** Copies the memberships of added users. */
@Controller()
export class CopyMembersOnUserAdded {
  constructor(private readonly members: MembersRepository) {}

  @MessagePattern(UserAdded.type)
  async copy(@Payload() { data, time }: UserAddedEvent, @Ctx() { apiKey }: DeliveryContext): Promise<void> {
    const added = data.users.map(({ userId, membership }) => ({ userId, version: membership }));
    await this.members.add(apiKey, data.organizationId, levelOf(data), added, Date.parse(time ?? '') || 0);
    observeCopied(UserAdded.type, data, time);
  }
}
