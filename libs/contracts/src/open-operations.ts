import { CheckAccess } from './access.check';
import { ListContacts } from './contacts.list';
import { SetDocument } from './documents.set';
import type { Message } from './message';
import { AddNotification } from './notifications.add';
import { GetNotifications } from './notifications.get';
import { AddUsers } from './users.add';

/** Operations that accounts of other services may be allowed to publish. All other messages are internal to this system. */
export const OPEN_OPERATIONS: readonly Message<object, object>[] = [
  AddUsers,
  AddNotification,
  SetDocument,
  GetNotifications,
  CheckAccess,
  ListContacts,
];
