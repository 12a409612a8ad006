import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { GetNotifications, GetNotificationsRequest, type GetNotificationsResult } from '@app/contracts/notifications.get';
import { decodePageToken, encodePageToken } from '@app/contracts/page-token';
import { JsonBytes } from '@app/amqp/messages/reply';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { Members } from '../users-service/members';
import { PagesRepository, positionOf } from '../db/pages.repository';
import { itemText, pageBody, printed } from './notification-item';

const DEFAULT_PAGE_SIZE = 1000;

@Controller()
export class GetNotificationsHandler {
  constructor(
    private readonly members: Members,
    private readonly pages: PagesRepository,
  ) {}

  @MessagePattern(GetNotifications.pattern)
  async get(
    @Payload() request: GetNotificationsRequest,
    @Ctx() context: DeliveryContext,
  ): Promise<JsonBytes<GetNotificationsResult>> {
    const { apiKey } = context;
    const { organizationId, documentId, locationId, userId, notificationIds } = request;
    if (userId !== undefined) await this.members.requireComplete(organizationId, userId, context);
    const { notifications, next } = await this.pages.find(
      { apiKey, organizationId, documentId, locationId, userId, ids: notificationIds },
      {
        newestFirst: request.order !== 'asc',
        size: request.pageSize ?? DEFAULT_PAGE_SIZE,
        after: request.pageToken === undefined ? undefined : decodePageToken(request.pageToken),
      },
    );
    context.rows = (context.rows ?? 0) + (notificationIds?.length ?? 0);
    const items = await printed(notifications, (notification) => itemText(notification, apiKey, organizationId));
    const isCut = items.length < notifications.length;
    const position = isCut ? positionOf(notifications[items.length - 1]) : next;
    const answer = { status: 'success', message: 'Notification(s) retrieved successfully.' };
    return new JsonBytes(pageBody(answer, items, position ? { pageToken: encodePageToken(position) } : {}));
  }
}
