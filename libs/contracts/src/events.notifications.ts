import { Described, Identifier, Nested, NestedList } from './fields';
import { event } from './event';
import { NotificationUser } from './notifications.add';

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

  @Described({ type: 'object', description: 'Values of the variables, as sent.' }, { optional: true })
  displayHeadlineMessageTemplateData?: Record<string, unknown>;

  @Described({ type: 'string', description: 'Secondary message.' }, { optional: true })
  displayBodyMessage?: string;

  @Described({ type: 'object', description: 'Data of the source, as sent.' }, { optional: true })
  notificationSourceData?: Record<string, unknown>;

  @NestedList(() => NotificationUser, 'Users to notify by name.')
  notifyUsers: NotificationUser[];

  @Described({ type: 'boolean', description: 'Whether everyone who can see the document is notified as well.' })
  notifyAll: boolean;

  @Described({ type: 'integer', description: 'When it was stored, in milliseconds since 1970.' })
  timestamp: number;

  @Described({ type: 'integer', minimum: 1, description: 'Always 1: a notification does not change.' })
  version: number;
}

/** A notification was stored. It has what an e-mail or push service needs. */
export const NotificationAdded = event('notifications', 'notification.added.v1', NotificationAddedData);
