import type { CloudEvent } from '@app/contracts/event';
import type { NotificationAddedData } from '@app/contracts/events.notifications';
import type { ApiKeyRevokedData, DocumentChangedData, OrganizationCreatedData, UserAddedData } from '@app/contracts/events.users';

/** What is told, by the type of the event. */
export interface Events {
  /** An organization was named for the first time. */
  'organization.created.v1': OrganizationCreatedData;
  /** Users are new somewhere, or their details have changed. */
  'user.added.v1': UserAddedData;
  /** The folder of a document, or who may open it, has changed. */
  'document.changed.v1': DocumentChangedData;
  /** An API key was disabled, or tokens of it end. */
  'api-key.revoked.v1': ApiKeyRevokedData;
  /** A notification was stored. */
  'notification.added.v1': NotificationAddedData;
}

export type EventType = keyof Events;

/**
 * What a listener does with each type that it wants. Resolving means done: the event is acknowledged. An error means: try again, and after
 * the last try into the dead letters. The same event may come again after a failure, with the same `id`.
 */
export type Handlers = { [Type in EventType]?: (event: CloudEvent<Events[Type]>) => unknown };

/** The body of an event, or undefined when it is none. What `data` holds is the word of the service that told it. */
export function readEvent(content: Buffer): CloudEvent<unknown> | undefined {
  try {
    const event = JSON.parse(content.toString()) as Partial<CloudEvent<unknown>> | null;
    const isEvent = event?.specversion === '1.0' && typeof event.id === 'string' && typeof event.type === 'string';
    return isEvent && typeof event.data === 'object' ? (event as CloudEvent<unknown>) : undefined;
  } catch {
    return undefined;
  }
}
