import { Controller, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { AddUsers, AddUsersRequest } from '@app/contracts/users.add';
import { RabbitClient, type CallOptions } from '@app/rabbitmq/client/rabbit.client';
import { Caller, Data, IdempotencyKey, Operation, resultOf } from './operation';

@Controller('v1/users')
export class UsersController {
  constructor(private readonly rabbit: RabbitClient) {}

  @Operation('add')
  async add(
    @Data(AddUsersRequest) data: AddUsersRequest,
    @Caller() caller: Omit<CallOptions, 'idempotencyKey'>,
    @IdempotencyKey() idempotencyKey: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    return resultOf(await this.rabbit.call(AddUsers, data, { idempotencyKey, ...caller }), reply);
  }
}
