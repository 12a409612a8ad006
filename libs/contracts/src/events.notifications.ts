import { Described, Identifier, Identifiers, Int64, Nested, NestedList } from './fields';
import { event } from './event';
import { EVENT_TYPES } from './event-types';
import { NotificationUser } from './notifications.add';
import { MOST_ERASED } from './users.erase';

export class NotificationAddedData {
  @Identifier('Identifier of the notification inside the organization.')
  notificationId: string;

  @Identifier('Organization of the notification.')
  organizationId: string;

  @Identifier('Document of the notification.')
  documentId: string;

  @Identifier('Location inside the document.', { optional: true })
  locationId?: string;

  @Nested(() => NotificationUser, 'User who caused it.')
  actionUser: NotificationUser;

  @Described({ type: 'string', description: 'Headline with variables in curly brackets.' })
  displayHeadlineMessageTemplate: string;

  @Described({ type: 'object', additionalProperties: true, description: 'Values of the variables, as sent.' }, { optional: true })
  displayHeadlineMessageTemplateData?: Record<string, unknown>;

  @Described({ type: 'string', description: 'Secondary message.' }, { optional: true })
  displayBodyMessage?: string;

  @Described({ type: 'object', additionalProperties: true, description: 'Data of the source, as sent.' }, { optional: true })
  notificationSourceData?: Record<string, unknown>;

  @NestedList(() => NotificationUser, 'Users to notify by name.')
  notifyUsers: NotificationUser[];

  @Described({ type: 'boolean', description: 'Whether all users who can see the document are notified too.' })
  notifyAll: boolean;

  @Int64('Time of storing, in milliseconds since 1970.')
  timestamp: number;

  @Int64('Always 1: a notification does not change.', { minimum: 1 })
  version: number;
}

export const NotificationAdded = event('notifications', EVENT_TYPES.notificationAdded, NotificationAddedData, {
  purpose:
    'A notification was stored. Each user in `notifyUsers` has the name and the e-mail address that were sent; `users.get.v1` reads those that were not.',
  example: {
    notificationId: 'release-1.0',
    organizationId: 'acme',
    documentId: 'roadmap',
    locationId: 'chapter-2',
    actionUser: { userId: 'ada', name: 'Ada Lovelace', email: 'ada@example.com' },
    displayHeadlineMessageTemplate: '{actionUser} released {version}',
    displayHeadlineMessageTemplateData: { actionUser: { userId: 'ada', name: 'Ada Lovelace' }, version: '1.0' },
    displayBodyMessage: 'Please have a look.',
    notifyUsers: [{ userId: 'grace', name: 'Grace Hopper' }],
    notifyAll: false,
    timestamp: 1769860682117,
    version: 1,
  },
});

export class NotificationDeletedData {
  @Identifier('Organization of the notifications.')
  organizationId: string;

  @Identifiers('The deleted notifications, at most 256.')
  notificationIds: string[];

  @Int64('Always 1: a notification is deleted once.', { minimum: 1 })
  version: number;
}

export const NotificationDeleted = event('notifications', EVENT_TYPES.notificationDeleted, NotificationDeletedData, {
  purpose:
    'Notifications were deleted, for all their users. This event wins over `notification.added.v1` of the same id, in any order of arrival. It is published at once, or within 20 seconds when a notification was so new that its own event may still have been on its way. A deletion by age (`RETENTION_DAYS`) has no event.',
  example: { organizationId: 'acme', notificationIds: ['release-1.0'], version: 1 },
});

export class InboxChangedData {
  @Identifier('Organization of the users.')
  organizationId: string;

  @Identifiers('Users whose inbox has changed, at most 1000.')
  userIds: string[];
}

export const InboxChanged = event('notifications', EVENT_TYPES.inboxChanged, InboxChangedData, {
  purpose:
    'Users have marked notifications as read or unread. A hint without state and without order: read the inbox again. New and deleted notifications have events of their own.',
  example: { organizationId: 'acme', userIds: ['grace'] },
});

export class UserDataDeletedData {
  @Identifiers('Users whose data is gone.', { min: 1, max: MOST_ERASED })
  userIds: string[];

  @Identifiers('Organizations in which it is gone. Absent: all organizations of the API key.', { min: 1, optional: true })
  organizationIds?: string[];
}

export const UserDataDeleted = event('notifications', EVENT_TYPES.userDataDeleted, UserDataDeletedData, {
  purpose:
    'An erasure with `users.erase.v1` is complete: no table of this system has data of these users from before the call, and no event with such data follows. The subject of the event is the API key.',
  example: { userIds: ['ada'] },
});
