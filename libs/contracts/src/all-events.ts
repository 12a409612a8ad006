import type { Event } from './event';
import type { ServiceName } from './message';
import { NotificationAdded } from './events.notifications';
import { DocumentChanged, OrganizationCreated, UserAdded } from './events.users';

/** Every event of the system. */
export const ALL_EVENTS: readonly Event<object>[] = [OrganizationCreated, UserAdded, DocumentChanged, NotificationAdded];

/** What each service listens to. */
export const SUBSCRIPTIONS: Readonly<Record<ServiceName, readonly Event<object>[]>> = {
  users: [],
  notifications: [UserAdded, DocumentChanged],
};
