import { CheckAccess } from './access.check';
import { ListContacts } from './contacts.list';
import { SetDocument } from './documents.set';
import { ListMemberships } from './memberships.list';
import type { Message } from './message';
import { AddNotification } from './notifications.add';
import { DeleteNotifications } from './notifications.delete';
import { GetNotifications } from './notifications.get';
import { GetInbox } from './notifications.inbox';
import { UpdateNotifications } from './notifications.update';
import { AddUsers } from './users.add';
import { Authenticate } from './users.authenticate';
import { Authorize } from './users.authorize';
import { DeleteUsers } from './users.delete';
import { EraseUsers } from './users.erase';
import { Exists } from './users.exists';
import { GetUsers } from './users.get';

const DECLARED = [
  AddUsers,
  DeleteUsers,
  EraseUsers,
  GetUsers,
  SetDocument,
  Authenticate,
  Authorize,
  Exists,
  CheckAccess,
  ListContacts,
  ListMemberships,
  AddNotification,
  GetNotifications,
  DeleteNotifications,
  UpdateNotifications,
  GetInbox,
] as const;

/** Every message of the system. Each has bindings in the broker, and must have exactly one handler in its service. */
export const ALL_MESSAGES: readonly Message<object, object>[] = DECLARED;

/** The path of each HTTP operation. */
export type HttpPath = NonNullable<(typeof DECLARED)[number]['http']>['path'];

/** Messages that accounts of other services may be allowed to publish; every other message is between the services of this system. */
export const OPEN_MESSAGES = ALL_MESSAGES.filter(({ open }) => open);

/** Messages that have an HTTP operation. */
export const HTTP_MESSAGES = ALL_MESSAGES.filter(
  (message): message is typeof message & Required<Pick<typeof message, 'http'>> => message.http !== undefined,
);
