import { Controller } from '@nestjs/common';
import { AddNotification, AddNotificationRequest } from '@app/contracts/notifications.add';
import { GetNotifications, GetNotificationsRequest } from '@app/contracts/notifications.get';
import { RabbitClient, type CallOptions } from '@app/rabbitmq/rabbit.client';
import { Caller, Data, IdempotencyKey, Operation } from './http/operation';

@Controller('v1/notifications')
export class NotificationsController {
  constructor(private readonly rabbit: RabbitClient) {}

  /** Without a notificationId the message id, which the client makes up, becomes the id of the notification. */
  @Operation('add')
  add(
    @Data(AddNotificationRequest) data: AddNotificationRequest,
    @Caller() caller: CallOptions,
    @IdempotencyKey() idempotencyKey?: string,
  ) {
    return this.rabbit.call(AddNotification, data, { ...caller, idempotencyKey });
  }

  @Operation('get')
  get(@Data(GetNotificationsRequest) data: GetNotificationsRequest, @Caller() caller: CallOptions) {
    return this.rabbit.call(GetNotifications, data, caller);
  }
}
