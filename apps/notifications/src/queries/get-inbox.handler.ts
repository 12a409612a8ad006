import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { GetInbox, InboxRequest, type InboxResult } from '@app/contracts/notifications.inbox';
import { decodePageToken, encodePageToken } from '@app/contracts/page-token';
import { JsonBytes } from '@app/amqp/messages/reply';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { InboxRepository } from '../db/inbox.repository';
import { positionOf } from '../db/pages.repository';
import { Members } from '../users-service/members';
import { itemText, pageBody, printed } from './notification-item';

const DEFAULT_PAGE_SIZE = 50;

@Controller()
export class GetInboxHandler {
  constructor(
    private readonly members: Members,
    private readonly inbox: InboxRepository,
  ) {}

  @MessagePattern(GetInbox.pattern)
  async get(@Payload() request: InboxRequest, @Ctx() context: DeliveryContext): Promise<JsonBytes<InboxResult>> {
    const { apiKey } = context;
    const { organizationId, documentId, locationId, userId, unread, pageSize: size = DEFAULT_PAGE_SIZE, pageToken } = request;
    await this.members.requireComplete(organizationId, userId, context);
    const found = await this.inbox.find(
      { apiKey, organizationId, userId, documentId, locationId, unread },
      { size, after: pageToken === undefined ? undefined : decodePageToken(pageToken) },
    );
    context.rows = (context.rows ?? 0) + found.rows;
    const items = await printed(found.notifications, (one) => itemText(one, apiKey, organizationId, { read: one.read }));
    const isCut = items.length < found.notifications.length;
    const next = isCut ? positionOf(found.notifications[items.length - 1]) : found.next;
    const answer = { status: 'success', message: 'Notification(s) retrieved successfully.' };
    const rest = { unread: found.unread, asOf: found.asOf, ...(next && { pageToken: encodePageToken(next) }) };
    return new JsonBytes(pageBody(answer, items, rest));
  }
}
