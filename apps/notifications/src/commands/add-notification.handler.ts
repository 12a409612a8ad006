import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { ApiError } from '@app/contracts/error';
import { identifierProblem } from '@app/contracts/fields';
import { fingerprintOf, usedBefore } from '@app/contracts/idempotency';
import { AddNotification, AddNotificationRequest, type AddNotificationResult } from '@app/contracts/notifications.add';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { Reply } from '@app/amqp/messages/reply';
import { traceOf } from '@app/tracing/tracing';
import type { NewNotification } from '../db/insert-notifications.repository';
import { Existence } from '../users-service/existence';
import { NotificationWriter } from '../writer/notification-writer';
import type { Written } from '../writer/written';

const ADDED = 'Notification added successfully.';

@Controller()
export class AddNotificationHandler {
  constructor(
    private readonly existence: Existence,
    private readonly writer: NotificationWriter,
  ) {}

  @MessagePattern(AddNotification.pattern)
  async add(@Payload() request: AddNotificationRequest, @Ctx() context: DeliveryContext): Promise<Reply<AddNotificationResult>> {
    await this.existence.requireTenant(context);
    const notification = toNotification(request, context);
    if (request.createOrganization === false || request.createDocument === false)
      await this.requireWhatMayNotBeCreated(request, notification, context);
    const written = await this.writer.add(notification, context.span);
    return new Reply(
      { status: 'success', message: ADDED, data: { success: true, message: ADDED } },
      { 'x-notification-id': storedId(written) },
    );
  }

  private async requireWhatMayNotBeCreated(
    { organizationId, documentId, createOrganization, createDocument }: AddNotificationRequest,
    notification: NewNotification,
    context: DeliveryContext,
  ): Promise<void> {
    // If this Idempotency-Key has an answer, existence is not checked again.
    if (await this.writer.hasAnswer(notification, context.span)) return;
    const needed = { organization: createOrganization === false, document: createDocument === false };
    await this.existence.require({ organizationId, documentId, ...needed }, context);
  }
}

function toNotification(request: AddNotificationRequest, context: DeliveryContext): NewNotification {
  const { notificationId, createDocument: _document, createOrganization: _organization, ...content } = request;
  const id = notificationId ?? context.messageId;
  if (id === undefined) throw new ApiError('INVALID_ARGUMENT', 'notificationId is required in a message without message_id.');
  const problem = identifierProblem(id);
  if (problem) throw new ApiError('INVALID_ARGUMENT', `message_id${problem}`);
  const notifyUsers = [...new Map((request.notifyUsers ?? []).map((user) => [user.userId, user])).values()];
  return {
    apiKey: context.apiKey,
    organizationId: request.organizationId,
    id,
    documentId: request.documentId,
    locationId: request.locationId,
    notifyAll: request.notifyAll ?? notifyUsers.length === 0,
    fingerprint: fingerprintOf(content),
    content: {
      actionUser: request.actionUser,
      displayHeadlineMessageTemplate: request.displayHeadlineMessageTemplate,
      displayHeadlineMessageTemplateData: request.displayHeadlineMessageTemplateData,
      displayBodyMessage: request.displayBodyMessage,
      notificationSourceData: request.notificationSourceData,
      notifyUsers,
    },
    deadline: context.deadline,
    trace: traceOf(context.span),
    ...(context.idempotencyKey && {
      idempotency: { key: context.idempotencyKey, fingerprint: fingerprintOf(request) },
    }),
  };
}

function storedId(written: Written): string {
  switch (written.outcome) {
    case 'stored':
      return written.notificationId;
    case 'different':
      throw new ApiError('ALREADY_EXISTS', 'A notification with this notificationId and other content exists.');
    case 'keyReused':
      throw usedBefore();
    case 'expired':
      throw new ApiError('UNAVAILABLE', 'The deadline passed before the notification was stored.');
    case 'contended':
      throw new ApiError('UNAVAILABLE', 'The notification could not be stored now.');
  }
}
