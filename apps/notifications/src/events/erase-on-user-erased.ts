import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { UserErased } from '@app/contracts/events.users';
import { UserErasedEvent } from '@app/contracts/handled-events';
import { ErasureLoop } from '@app/postgres/retention/erasure-loop';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { ErasuresRepository } from '../db/erasures.repository';

/** Orders the erasure of users; the loop does it. */
@Controller()
export class EraseOnUserErased {
  constructor(
    private readonly erasures: ErasuresRepository,
    private readonly loop: ErasureLoop,
  ) {}

  @MessagePattern(UserErased.type)
  async erase(@Payload() { id, data }: UserErasedEvent, @Ctx() { apiKey }: DeliveryContext): Promise<void> {
    await this.erasures.order({ id, apiKey, ...data });
    this.loop.wake();
  }
}
