import type { Event } from './event';
import type { ServiceName } from './message';
import { InboxChanged, NotificationAdded, NotificationDeleted, UserDataDeleted } from './events.notifications';
import { ApiKeyRevoked, DocumentChanged, OrganizationCreated, UserAdded, UserErased, UserRemoved } from './events.users';

/** Every event of the system. */
export const ALL_EVENTS: readonly Event<object>[] = [
  OrganizationCreated,
  UserAdded,
  UserRemoved,
  UserErased,
  DocumentChanged,
  ApiKeyRevoked,
  NotificationAdded,
  NotificationDeleted,
  InboxChanged,
  UserDataDeleted,
];

/** Events that each service listens to. All processes of a service share one queue. */
export const SUBSCRIPTIONS: Readonly<Record<ServiceName, readonly Event<object>[]>> = {
  users: [],
  notifications: [UserAdded, UserRemoved, UserErased, DocumentChanged],
};

/** Event types that processes of this system listen to: {@link SUBSCRIPTIONS}, and one of the gateway, with a queue for each process. */
export const HEARD_HERE: ReadonlySet<string> = new Set(
  [...Object.values(SUBSCRIPTIONS).flat(), ApiKeyRevoked].map(({ type }) => type),
);
