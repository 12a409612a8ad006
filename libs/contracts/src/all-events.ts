import type { Event } from './event';
import type { ServiceName } from './message';
import { NotificationAdded } from './events.notifications';
import { ApiKeyRevoked, DocumentChanged, OrganizationCreated, UserAdded } from './events.users';

/** Every event of the system. */
export const ALL_EVENTS: readonly Event<object>[] = [
  OrganizationCreated,
  UserAdded,
  DocumentChanged,
  ApiKeyRevoked,
  NotificationAdded,
];

/** What each service listens to, in a queue of its own that all its processes share. */
export const SUBSCRIPTIONS: Readonly<Record<ServiceName, readonly Event<object>[]>> = {
  users: [],
  notifications: [UserAdded, DocumentChanged],
};

/** Types of the events that processes of this system hear: the gateway listens to one beside {@link SUBSCRIPTIONS}, in a queue for each process. */
export const HEARD_HERE: ReadonlySet<string> = new Set(
  [...Object.values(SUBSCRIPTIONS).flat(), ApiKeyRevoked].map(({ type }) => type),
);
