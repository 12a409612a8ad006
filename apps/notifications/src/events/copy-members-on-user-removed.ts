import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { UserRemoved } from '@app/contracts/events.users';
import { UserRemovedEvent } from '@app/contracts/handled-events';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { levelOf, MembersRepository } from '../db/members.repository';
import { observeCopied } from '../metrics';

/** Ends the copied memberships of removed users. */
@Controller()
export class CopyMembersOnUserRemoved {
  constructor(private readonly members: MembersRepository) {}

  @MessagePattern(UserRemoved.type)
  async copy(@Payload() { data, time }: UserRemovedEvent, @Ctx() { apiKey }: DeliveryContext): Promise<void> {
    const level = levelOf(data);
    if (level.level === 'organization') await this.members.leave(apiKey, data.organizationId, data.users);
    else await this.members.remove(apiKey, data.organizationId, level, data.users);
    observeCopied(UserRemoved.type, data, time);
  }
}
