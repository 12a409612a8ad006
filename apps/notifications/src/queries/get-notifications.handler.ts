import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  GetNotifications,
  GetNotificationsRequest,
  type GetNotificationsResult,
  type NotificationItem,
  type StoredUser,
} from '@app/contracts/notifications.get';
import { decodePageToken, encodePageToken } from '@app/contracts/page-token';
import { JsonText } from '@app/amqp/reply';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import type { KeptUser } from '../db/entities/notification.entity';
import { Members } from '../users-service/members';
import { PAGE_BYTES, PagesRepository, type StoredNotification } from '../db/pages.repository';

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
  ): Promise<JsonText<GetNotificationsResult>> {
    const { apiKey } = context;
    const { organizationId, documentId, locationId, userId, notificationIds } = request;
    if (userId !== undefined) await this.members.requireComplete(organizationId, userId, context);
    const { notifications, more } = await this.pages.find(
      { apiKey, organizationId, documentId, locationId, userId, ids: notificationIds },
      {
        newestFirst: request.order !== 'asc',
        size: request.pageSize ?? DEFAULT_PAGE_SIZE,
        after: request.pageToken === undefined ? undefined : decodePageToken(request.pageToken),
      },
    );
    const items = await printed(notifications, (notification) => toItem(notification, apiKey, organizationId));
    const last = notifications[items.length - 1];
    const isPartial = more || items.length < notifications.length;
    const answer = { status: 'success', message: 'Notification(s) retrieved successfully.' };
    const rest = last && isPartial && { pageToken: encodePageToken({ timestamp: last.timestamp, notificationId: last.id }) };
    // Each item is serialized only once, because a page may have a thousand.
    return new JsonText(
      `${JSON.stringify(answer).slice(0, -1)},"data":[${items.join()}]${rest ? `,${JSON.stringify(rest).slice(1)}` : '}'}`,
    );
  }
}

/** Serialized text after which the event loop may run other calls: they wait 2 ms, not the time of a whole page. */
const BYTES_AT_A_TIME = 128 * 1024;

/** Serializes notifications up to the page limit, at least one. The repository limits the read, this limits the reply. */
async function printed(
  notifications: readonly StoredNotification[],
  itemOf: (notification: StoredNotification) => NotificationItem,
): Promise<string[]> {
  const items: string[] = [];
  let bytes = 0;
  let roundAt = BYTES_AT_A_TIME;
  for (const notification of notifications) {
    const item = JSON.stringify(itemOf(notification));
    bytes += Buffer.byteLength(item);
    if (items.length > 0 && bytes > PAGE_BYTES) break;
    items.push(item);
    if (bytes < roundAt) continue;
    roundAt = bytes + BYTES_AT_A_TIME;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return items;
}

function toItem(
  { id, timestamp, documentId, locationId, content }: StoredNotification,
  apiKey: string,
  organizationId: string,
): NotificationItem {
  // fromEntries() creates own properties, even for a user with the id `__proto__`.
  const named = Object.fromEntries(content.notifyUsers.map(({ userId }) => [userId, true as const]));
  return {
    id,
    notificationSource: 'custom',
    notificationSourceData: content.notificationSourceData ?? {},
    actionUser: toUser(content.actionUser),
    displayBodyMessage: content.displayBodyMessage ?? '',
    displayHeadlineMessageTemplate: content.displayHeadlineMessageTemplate,
    displayHeadlineMessageTemplateData: content.displayHeadlineMessageTemplateData ?? {},
    metadata: { apiKey, documentId, organizationId, ...(locationId !== null && { locationId }) },
    notifyUsers: named,
    notifyUsersByUserId: named,
    timestamp,
  };
}

const toUser = ({ userId, name = '', email = '' }: KeptUser): StoredUser => ({ userId, name, email });
