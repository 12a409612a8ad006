import type { CheckAccessRequest, CheckAccessResult } from '@app/contracts/access.check';
import type { ListContactsRequest, ListContactsResult } from '@app/contracts/contacts.list';
import type { SetDocumentRequest, SetDocumentResult } from '@app/contracts/documents.set';
import type { AddNotificationRequest, AddNotificationResult } from '@app/contracts/notifications.add';
import type { GetNotificationsRequest, GetNotificationsResult } from '@app/contracts/notifications.get';
import type { AddUsersRequest, AddUsersResult } from '@app/contracts/users.add';

/** Commands by their routing keys: they change something, and may be published without waiting. */
export interface Commands {
  /** Adds users to an organization, a folder or a document; users that exist are updated. */
  'users.add.v1': { request: AddUsersRequest; result: AddUsersResult };
  /** Stores a notification. Its id is its `notificationId`, else the message id of the command. */
  'notifications.add.v1': { request: AddNotificationRequest; result: AddNotificationResult };
  /** Says where a document is and who may open it; what is absent has its default afterwards. */
  'documents.set.v1': { request: SetDocumentRequest; result: SetDocumentResult };
}

/** Queries by their routing keys: they change nothing and are always waited for. */
export interface Queries {
  /** Reads a page of notifications. */
  'notifications.get.v1': { request: GetNotificationsRequest; result: GetNotificationsResult };
  /** Asks whether a user may open a document. */
  'access.check.v1': { request: CheckAccessRequest; result: CheckAccessResult };
  /** Reads a contact list, in pages. */
  'contacts.list.v1': { request: ListContactsRequest; result: ListContactsResult };
}

export type Operations = Commands & Queries;

/** What the client can be asked to do, and how it travels. Contract classes are types only here: their checks are the services' affair. */
export const KINDS: Readonly<Record<keyof Commands, 'command'> & Record<keyof Queries, 'query'>> = {
  'users.add.v1': 'command',
  'notifications.add.v1': 'command',
  'documents.set.v1': 'command',
  'notifications.get.v1': 'query',
  'access.check.v1': 'query',
  'contacts.list.v1': 'query',
};
