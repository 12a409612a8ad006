import { Controller, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { AddNotification, AddNotificationRequest } from '@app/contracts/notifications.add';
import { GetNotifications, GetNotificationsRequest } from '@app/contracts/notifications.get';
import { RabbitClient, type CallOptions } from '@app/rabbitmq/client/rabbit.client';
import { Caller, Data, IdempotencyKey, Operation, resultOf } from './operation';

@Controller('v1/notifications')
export class NotificationsController {
  constructor(private readonly rabbit: RabbitClient) {}

  /** Without a notificationId the message id, which the client makes up, becomes the id of the notification. */
  @Operation('add')
  async add(
    @Data(AddNotificationRequest) data: AddNotificationRequest,
    @Caller() caller: Omit<CallOptions, 'idempotencyKey'>,
    @IdempotencyKey() idempotencyKey: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    return resultOf(await this.rabbit.call(AddNotification, data, { idempotencyKey, ...caller }), reply);
  }

  @Operation('get')
  async get(
    @Data(GetNotificationsRequest) data: GetNotificationsRequest,
    @Caller() caller: CallOptions,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    return resultOf(await this.rabbit.call(GetNotifications, data, caller), reply);
  }
}
