import type { CloudEvent } from '@app/contracts/event';
import type { NotificationAddedData } from '@app/contracts/events.notifications';
import type { ApiKeyRevokedData, DocumentChangedData, OrganizationCreatedData, UserAddedData } from '@app/contracts/events.users';

/** Data of each event type. */
export interface Events {
  /** An organization was named for the first time. */
  'organization.created.v1': OrganizationCreatedData;
  /** Users were added, or their details have changed. */
  'user.added.v1': UserAddedData;
  /** The folder or the access type of a document has changed. */
  'document.changed.v1': DocumentChangedData;
  /** An API key was disabled, or some of its tokens end. */
  'api-key.revoked.v1': ApiKeyRevokedData;
  /** A notification was stored. */
  'notification.added.v1': NotificationAddedData;
}

export type EventType = keyof Events;

/**
 * Handlers by event type. When a handler resolves, the event is acknowledged. When it fails, the event is retried, and becomes a dead letter after
 * the last attempt. The same event may arrive again after a failure, with the same `id`.
 */
export type Handlers = { [Type in EventType]?: (event: CloudEvent<Events[Type]>) => unknown };

/** Parses the body of an event; undefined when it is not an event. `data` is not validated: the publishing service is trusted. */
export function readEvent(content: Buffer): CloudEvent<unknown> | undefined {
  try {
    const event = JSON.parse(content.toString()) as Partial<CloudEvent<unknown>> | null;
    const isEvent = event?.specversion === '1.0' && typeof event.id === 'string' && typeof event.type === 'string';
    return isEvent && typeof event.data === 'object' ? (event as CloudEvent<unknown>) : undefined;
  } catch {
    return undefined;
  }
}
