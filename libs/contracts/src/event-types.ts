/**
 * The types of all events: routing keys in exchange `events`, and CloudEvents `type`. A leaf, and the only file of the contracts that `db/`
 * may import: statements write types, and no bodies are shared with a table.
 */
export const EVENT_TYPES = {
  organizationCreated: 'organization.created.v1',
  userAdded: 'user.added.v1',
  userRemoved: 'user.removed.v1',
  userErased: 'user.erased.v1',
  documentChanged: 'document.changed.v1',
  apiKeyRevoked: 'api-key.revoked.v1',
  notificationAdded: 'notification.added.v1',
  notificationDeleted: 'notification.deleted.v1',
  inboxChanged: 'inbox.changed.v1',
  userDataDeleted: 'user.data-deleted.v1',
} as const;

export type EventType = (typeof EVENT_TYPES)[keyof typeof EVENT_TYPES];
