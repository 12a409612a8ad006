import { Controller } from '@nestjs/common';
import { AddUsers, AddUsersRequest } from '@app/contracts/users.add';
import { RabbitClient, type CallOptions } from '@app/rabbitmq/rabbit.client';
import { Caller, Data, IdempotencyKey, Operation } from './http/operation';

@Controller('v1/users')
export class UsersController {
  constructor(private readonly rabbit: RabbitClient) {}

  @Operation('add')
  add(@Data(AddUsersRequest) data: AddUsersRequest, @Caller() caller: CallOptions, @IdempotencyKey() idempotencyKey?: string) {
    return this.rabbit.call(AddUsers, data, { ...caller, idempotencyKey });
  }
}
