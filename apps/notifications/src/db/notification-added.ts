import { EVENT_TYPES } from '@app/contracts/event-types';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import type { KeptUser, NotificationContent } from './notification-content';

/** The published part of a stored notification, from the memory of the process that stored it or from its row. */
export interface AddedNotification {
  id: string;
  organizationId: string;
  documentId: string;
  locationId?: string | null;
  notifyAll: boolean;
  content: NotificationContent;
}

/** The row that the storing statement returns for a notification. */
export interface InsertedRow {
  /** Of the row in the outbox, as are `id` and `occurred_at`. */
  seq: string;
  id: string;
  occurred_at: Date;
  /** Timestamp of the notification, in epoch milliseconds. */
  ms: string;
}

/** The event of a notification that was just stored. */
export function addedEvent(
  notification: AddedNotification & { apiKey: string; trace?: string | null },
  { seq, id, occurred_at: occurredAt, ms }: InsertedRow,
): OutboxEvent {
  const { apiKey, organizationId, trace } = notification;
  const data = notificationAdded(notification, ms);
  return { seq, id, type: EVENT_TYPES.notificationAdded, apiKey, organizationId, occurredAt, data, trace: trace ?? null };
}

/**
 * JSON text of the data of notification.added.v1, field by field: what else is kept of a notification is not published by itself.
 *
 * @param timestamp epoch milliseconds, as PostgreSQL returns a bigint
 */
export function notificationAdded(notification: AddedNotification, timestamp: string): string {
  const { content } = notification;
  return JSON.stringify({
    notificationId: notification.id,
    organizationId: notification.organizationId,
    documentId: notification.documentId,
    ...(notification.locationId != null && { locationId: notification.locationId }),
    notifyAll: notification.notifyAll,
    timestamp: Number(timestamp),
    version: 1,
    actionUser: published(content.actionUser),
    displayHeadlineMessageTemplate: content.displayHeadlineMessageTemplate,
    displayHeadlineMessageTemplateData: content.displayHeadlineMessageTemplateData,
    displayBodyMessage: content.displayBodyMessage,
    notificationSourceData: content.notificationSourceData,
    notifyUsers: content.notifyUsers.map(published),
  });
}

const published = ({ userId, name, email }: KeptUser) => ({ userId, name, email });
