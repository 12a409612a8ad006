import type { Event } from './event';
import { NotificationAdded } from './events.notifications';
import { DocumentChanged, OrganizationCreated, UserAdded } from './events.users';

/** Every event of the system. */
export const ALL_EVENTS: readonly Event<object>[] = [OrganizationCreated, UserAdded, DocumentChanged, NotificationAdded];
