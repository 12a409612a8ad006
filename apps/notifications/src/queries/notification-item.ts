import type { NotificationItem, StoredUser } from '@app/contracts/notifications.get';
import type { KeptUser } from '../db/entities/notification.entity';
import { PAGE_BYTES, type StoredNotification } from '../db/pages.repository';

/** Serialized text after which the event loop may run other calls: they wait 2 ms, not the time of a whole page. */
const BYTES_AT_A_TIME = 128 * 1024;

/** Serializes notifications up to the page limit, at least one. The repository limits the read, this limits the reply. */
export async function printed<Stored>(
  notifications: readonly Stored[],
  itemOf: (notification: Stored) => NotificationItem,
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

/** A notification as callers get it. */
export function toItem(
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

/** The body of a page. Its items are serialized only once, because there may be a thousand. */
export function pageText(answer: object, items: readonly string[], rest: object): string {
  const end = JSON.stringify(rest).slice(1);
  return `${JSON.stringify(answer).slice(0, -1)},"data":[${items.join()}]${end === '}' ? '' : ','}${end}`;
}
