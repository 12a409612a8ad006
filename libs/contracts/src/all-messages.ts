import { CheckAccess } from './access.check';
import { ListContacts } from './contacts.list';
import { SetDocument } from './documents.set';
import { ListMemberships } from './memberships.list';
import type { Message } from './message';
import { AddNotification } from './notifications.add';
import { GetNotifications } from './notifications.get';
import { AddUsers } from './users.add';
import { Authenticate } from './users.authenticate';
import { Authorize } from './users.authorize';
import { Exists } from './users.exists';

/** Every message of the system. Each has bindings in the broker, and must have exactly one handler in its service. */
export const ALL_MESSAGES: readonly Message<object, object>[] = [
  AddUsers,
  SetDocument,
  Authenticate,
  Authorize,
  Exists,
  CheckAccess,
  ListContacts,
  ListMemberships,
  AddNotification,
  GetNotifications,
];
