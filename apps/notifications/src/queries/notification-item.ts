import { setImmediate as immediate } from 'node:timers/promises';
import type { NotificationItem, StoredUser } from '@app/contracts/notifications.get';
import type { KeptUser, NotificationContent } from '../db/notification-content';
import { PAGE_BYTES, type StoredNotification } from '../db/pages.repository';

/** Serialized text after which the event loop may run other calls: they wait 2 ms, not the time of a whole page. */
const BYTES_AT_A_TIME = 128 * 1024;

/** Serializes notifications up to the page limit, at least one. The repository limits the read, this limits the reply. */
export async function printed<Stored>(
  notifications: readonly Stored[],
  textOf: (notification: Stored) => string,
): Promise<Buffer[]> {
  const items: Buffer[] = [];
  let bytes = 0;
  let roundAt = BYTES_AT_A_TIME;
  for (const notification of notifications) {
    const item = Buffer.from(textOf(notification));
    bytes += item.length;
    if (items.length > 0 && bytes > PAGE_BYTES) break;
    items.push(item);
    if (bytes < roundAt) continue;
    roundAt = bytes + BYTES_AT_A_TIME;
    await immediate();
  }
  return items;
}

/** A notification as callers get it, as JSON text. @param more fields after those of a notification */
export function itemText(
  { id, timestamp, documentId, locationId, content: json }: StoredNotification,
  apiKey: string,
  organizationId: string,
  more?: object,
): string {
  const content = JSON.parse(json) as NotificationContent;
  const beginning: Omit<NotificationItem, 'notifyUsers' | 'notifyUsersByUserId' | 'timestamp'> = {
    id,
    notificationSource: 'custom',
    notificationSourceData: content.notificationSourceData ?? {},
    actionUser: toUser(content.actionUser),
    displayBodyMessage: content.displayBodyMessage ?? '',
    displayHeadlineMessageTemplate: content.displayHeadlineMessageTemplate,
    displayHeadlineMessageTemplateData: content.displayHeadlineMessageTemplateData ?? {},
    metadata: { apiKey, documentId, organizationId, ...(locationId !== null && { locationId }) },
  };
  const named = namedText(content.notifyUsers.map(({ userId }) => userId));
  const end = JSON.stringify({ timestamp, ...more }).slice(1);
  return `${JSON.stringify(beginning).slice(0, -1)},"notifyUsers":${named},"notifyUsersByUserId":${named},${end}`;
}

const toUser = ({ userId, name = '', email = '' }: KeptUser): StoredUser => ({ userId, name, email });

/** `{"userId":true,…}` as text: an object with a thousand keys takes several times longer to make and to print. */
function namedText(ids: readonly string[]): string {
  if (ids.length === 0) return '{}';
  const list = JSON.stringify(ids);
  // An object has whole numbers first. fromEntries() creates own properties, even for a user with the id `__proto__`.
  if (/"\d+"/.test(list)) return JSON.stringify(Object.fromEntries(ids.map((id) => [id, true])));
  // Without a backslash all quotes are around ids; the first one is left out, because an id `,` beside it would look like a boundary. One
  // replacement takes a third of the time of printing each id.
  if (!list.includes('\\')) return `{"${list.slice(2, -1).replaceAll('","', '":true,"')}:true}`;
  return `{${ids.map((id) => `${JSON.stringify(id)}:true`).join()}}`;
}

const COMMA = Buffer.from(',');

/**
 * The body of a page. Its items are serialized only once, because there may be a thousand. They never are one string: V8 would copy and scan
 * its 4 MiB several times.
 */
export function pageBody(answer: object, items: readonly Buffer[], rest: object): Buffer {
  const end = JSON.stringify(rest).slice(1);
  return Buffer.concat([
    Buffer.from(`${JSON.stringify(answer).slice(0, -1)},"data":[`),
    ...items.flatMap((item, index) => (index === 0 ? [item] : [COMMA, item])),
    Buffer.from(`]${end === '}' ? '' : ','}${end}`),
  ]);
}
