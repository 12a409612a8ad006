import { Described, Flag, Identifier, Int64, LIMITS, Nested, Success, WholeNumber } from './fields';
import { query } from './message';
import { NotificationItem } from './notifications.get';
import { decodePageToken, PageToken } from './page-token';

export class InboxRequest {
  @Identifier('Organization to read. An unknown organization has no notifications.')
  organizationId: string;

  @Identifier('User whose inbox it is: the notifications that name the user, and those to all that the user may see today.')
  userId: string;

  @Identifier('Only notifications of this document.', { optional: true })
  documentId?: string;

  @Identifier('Only notifications at this location.', { optional: true })
  locationId?: string;

  @Flag('true: only notifications that the user has not read.', { optional: true })
  unread?: boolean;

  @WholeNumber(
    'Most notifications in a page; a page also ends at 4 MiB. 0: only the count of unread ones. Default 50.',
    0,
    LIMITS.listLength,
    { optional: true },
  )
  pageSize?: number;

  @PageToken(decodePageToken)
  pageToken?: string;
}

export class InboxItem extends NotificationItem {
  @Described({ type: 'boolean', description: 'Whether the user has read it.' })
  read: boolean;
}

export class UnreadCount {
  @Described({ type: 'integer', minimum: 0, maximum: 100, description: 'Unread notifications for the given filters.' })
  count: number;

  @Described({
    type: 'boolean',
    description: 'false: the count is exact. true: `count` is a lower bound; show it with a plus sign, or for 0 a dot.',
  })
  more: boolean;
}

export class InboxResult {
  @Success()
  status: 'success';

  @Described({ type: 'string', description: '`Notification(s) retrieved successfully.`' })
  message: string;

  @Described({
    type: 'array',
    items: { $ref: '#/components/schemas/InboxItem' },
    maxItems: LIMITS.listLength,
    description:
      'The notifications of this page, newest first. It may be empty and have a `pageToken`: with `unread`, or when the user may not see very many of those to all.',
  })
  data: InboxItem[];

  @Nested(() => UnreadCount, 'The count of unread notifications, at the same moment as the page.')
  unread: UnreadCount;

  @Int64(
    'Time of the answer, in epoch milliseconds: `readUpTo` for notifications/update. What begins to be stored after the answer has a later `timestamp`.',
  )
  asOf: number;

  @Described({ type: 'string', description: 'Present when there may be more notifications.' }, { optional: true })
  pageToken?: string;
}

const MESSAGE = 'Notification(s) retrieved successfully.';
const FOUND: InboxResult = {
  status: 'success',
  message: MESSAGE,
  data: [
    {
      id: 'release-1.0',
      notificationSource: 'custom',
      notificationSourceData: {},
      actionUser: { userId: 'ada', name: 'Ada Lovelace', email: 'ada@example.com' },
      displayBodyMessage: 'Please have a look.',
      displayHeadlineMessageTemplate: '{actionUser} released {version}',
      displayHeadlineMessageTemplateData: { version: '1.0' },
      metadata: { apiKey: 'demo-key', organizationId: 'acme', documentId: 'roadmap' },
      notifyUsers: { grace: true },
      notifyUsersByUserId: { grace: true },
      timestamp: 1769860682117,
      read: false,
    },
  ],
  unread: { count: 1, more: false },
  asOf: 1769860690000,
};

export const GetInbox = query('notifications.inbox.v1', InboxRequest, InboxResult, {
  open: true,
  purpose:
    'Reads what a user is shown, newest first, with its read state, and counts what is unread. The page and the count are of the same moment.',
  example: { request: { organizationId: 'acme', userId: 'grace', pageSize: 20 }, result: FOUND },
  http: {
    path: '/v1/notifications/inbox',
    summary: 'Read the inbox of a user',
    effect:
      'Reads what a user is shown, newest first, each with `read`, and counts what is unread (`result.unread`). `unread: true` reads unread ones only.',
    goodToKnow:
      'The page and the count are of the same moment. The count is exact up to 100; with `more` it is a lower bound. `pageSize: 0` reads the count alone.',
    description: `Reads the notifications that notifications/get returns for the same user and filters, newest first, each with \`read\`.

\`result.unread\` counts the unread ones for the same filters. It is exact up to 100, unless \`more\` is true: then it is a lower bound.
\`pageSize: 0\` reads the count alone.

To mark everything as read that was there, send \`result.asOf\` as \`readUpTo\` to notifications/update. That includes what was just being stored.`,
    examples: {
      request: {
        page: { summary: 'The newest notifications', value: { organizationId: 'acme', userId: 'grace' } },
        unread: {
          summary: 'Unread ones of a document',
          value: { organizationId: 'acme', userId: 'grace', documentId: 'roadmap', unread: true },
        },
        count: { summary: 'The count alone', value: { organizationId: 'acme', userId: 'grace', pageSize: 0 } },
      },
      result: {
        found: { summary: 'One unread notification', value: FOUND },
        many: {
          summary: 'The count alone, more than 100',
          value: { status: 'success', message: MESSAGE, data: [], unread: { count: 100, more: true }, asOf: 1769860690000 },
        },
      },
    },
  },
});
