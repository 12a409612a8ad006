import type { CheckAccessRequest, CheckAccessResult } from '@app/contracts/access.check';
import type { ListContactsRequest, ListContactsResult } from '@app/contracts/contacts.list';
import type { SetDocumentRequest, SetDocumentResult } from '@app/contracts/documents.set';
import type { AddNotificationRequest, AddNotificationResult } from '@app/contracts/notifications.add';
import type { GetNotificationsRequest, GetNotificationsResult } from '@app/contracts/notifications.get';
import type { AddUsersRequest, AddUsersResult } from '@app/contracts/users.add';

/** Commands by routing key: they change something, and may be published without waiting. */
export interface Commands {
  /** Adds users to an organization, a folder or a document; users that exist are updated. */
  'users.add.v1': { request: AddUsersRequest; result: AddUsersResult };
  /** Stores a notification. Its id is its `notificationId`, else the message id of the command. */
  'notifications.add.v1': { request: AddNotificationRequest; result: AddNotificationResult };
  /** Sets the folder and the access type of a document. An absent field gets its default. */
  'documents.set.v1': { request: SetDocumentRequest; result: SetDocumentResult };
}

/** Queries by routing key: they change nothing, and always have a reply. */
export interface Queries {
  /** Reads a page of notifications. */
  'notifications.get.v1': { request: GetNotificationsRequest; result: GetNotificationsResult };
  /** Checks whether a user may open a document. */
  'access.check.v1': { request: CheckAccessRequest; result: CheckAccessResult };
  /** Reads a contact list, in pages. */
  'contacts.list.v1': { request: ListContactsRequest; result: ListContactsResult };
}

export type Operations = Commands & Queries;

/** Kind of each operation. Contract classes are imported only as types: the services validate. */
export const KINDS: Readonly<Record<keyof Commands, 'command'> & Record<keyof Queries, 'query'>> = {
  'users.add.v1': 'command',
  'notifications.add.v1': 'command',
  'documents.set.v1': 'command',
  'notifications.get.v1': 'query',
  'access.check.v1': 'query',
  'contacts.list.v1': 'query',
};
