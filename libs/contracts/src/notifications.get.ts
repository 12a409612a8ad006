import { Described, Identifier, Identifiers, Int64, LIMITS, OneOf, Success, WholeNumber } from './fields';
import { query, type Refusal } from './message';
import { decodePageToken, PageToken } from './page-token';

const FILTERS = ['documentId', 'locationId', 'userId', 'notificationIds'] as const;

/** The supported sets of filters, each with organizationId and in the order of FILTERS. */
export const FILTER_COMBINATIONS = [
  ['documentId'],
  ['documentId', 'notificationIds'],
  ['documentId', 'locationId'],
  ['documentId', 'locationId', 'notificationIds'],
  ['userId'],
  ['userId', 'notificationIds'],
  ['documentId', 'userId'],
  ['locationId', 'userId'],
  ['documentId', 'locationId', 'userId'],
] as const satisfies readonly (readonly (typeof FILTERS)[number][])[];

const SUPPORTED = FILTER_COMBINATIONS.map((filters) => filters.join(' + ')).join('; ');

export class GetNotificationsRequest {
  @Identifier('Organization to read. An unknown organization has no notifications.')
  organizationId: string;

  @Identifier('Only notifications of this document.', { optional: true })
  documentId?: string;

  @Identifier('Only notifications at this location.', { optional: true })
  locationId?: string;

  @Identifier('Only notifications of this user: named in notifyUsers, or reached by notifyAll.', { optional: true })
  userId?: string;

  @Identifiers('Only these notifications. An empty list matches nothing.', { optional: true })
  notificationIds?: string[];

  @OneOf('Newest first (desc, the default) or its exact reverse.', ['asc', 'desc'], { optional: true })
  order?: 'asc' | 'desc';

  @WholeNumber('Most notifications in a page; a page also ends at 4 MiB. Default 1000.', 1, LIMITS.listLength, { optional: true })
  pageSize?: number;

  @PageToken(decodePageToken)
  pageToken?: string;

  static refuse(request: GetNotificationsRequest): Refusal | undefined {
    const given = FILTERS.filter((filter) => request[filter] !== undefined);
    if (FILTER_COMBINATIONS.some((filters) => String(filters) === String(given))) return undefined;
    // Without any, one of these two is missing in every case.
    const [first = 'documentId', ...others] = given.length > 0 ? given : (['documentId', 'userId'] as const);
    const message = `This combination of filters is not supported. Supported, each with organizationId: ${SUPPORTED}.`;
    return { message, fields: [first, ...others] };
  }
}

/** A user as returned. Fields that were not sent are empty. */
export class StoredUser {
  @Identifier('Identifier of the user.')
  userId: string;

  @Described({ type: 'string', description: 'As sent, else empty.' })
  name: string;

  @Described({ type: 'string', description: 'As sent, else empty.' })
  email: string;
}

export class NotificationMetadata {
  @Identifier('API key that stored it.')
  apiKey: string;

  @Identifier('Its organization.')
  organizationId: string;

  @Identifier('Its document.')
  documentId: string;

  @Identifier('Its location, when it has one.', { optional: true })
  locationId?: string;
}

export class NotificationItem {
  @Identifier('Identifier of the notification.')
  id: string;

  @OneOf('Kind of source.', ['custom'])
  notificationSource: 'custom';

  @Described({ type: 'object', additionalProperties: true, description: 'As sent, else {}.' })
  notificationSourceData: Record<string, unknown>;

  @Described({ $ref: '#/components/schemas/StoredUser', description: 'The user who caused it.' })
  actionUser: StoredUser;

  @Described({ type: 'string', description: 'As sent, else empty.' })
  displayBodyMessage: string;

  @Described({ type: 'string', description: 'As sent.' })
  displayHeadlineMessageTemplate: string;

  @Described({ type: 'object', additionalProperties: true, description: 'As sent, else {}.' })
  displayHeadlineMessageTemplateData: Record<string, unknown>;

  @Described({
    $ref: '#/components/schemas/NotificationMetadata',
    description: 'Organization, document and location of the notification.',
  })
  metadata: NotificationMetadata;

  @Described({
    type: 'object',
    additionalProperties: { type: 'boolean', description: 'Always true. The key is the userId.' },
    description: 'The users named in the request.',
  })
  notifyUsers: Record<string, true>;

  @Described({
    type: 'object',
    additionalProperties: { type: 'boolean', description: 'Always true. The key is the userId.' },
    description: 'The same users, by userId.',
  })
  notifyUsersByUserId: Record<string, true>;

  @Int64('Time of storing, in epoch milliseconds.')
  timestamp: number;
}

export class GetNotificationsResult {
  @Success()
  status: 'success';

  @Described({ type: 'string', description: '`Notification(s) retrieved successfully.`' })
  message: string;

  @Described({
    type: 'array',
    items: { $ref: '#/components/schemas/NotificationItem' },
    maxItems: LIMITS.listLength,
    description:
      'The notifications of this page. It may be empty and have a `pageToken`, when the user may not see very many of those to all.',
  })
  data: NotificationItem[];

  @Described({ type: 'string', description: 'Present when there may be more notifications.' }, { optional: true })
  pageToken?: string;
}

const ANSWER = { status: 'success', message: 'Notification(s) retrieved successfully.' } as const;
const ADA = { userId: 'ada', name: 'Ada Lovelace', email: 'ada@example.com' };

export const GetNotifications = query('notifications.get.v1', GetNotificationsRequest, GetNotificationsResult, {
  open: true,
  purpose: `Reads notifications in pages, newest first. Supported filters, each with \`organizationId\`: ${SUPPORTED}.`,
  example: {
    request: { organizationId: 'acme', documentId: 'roadmap', userId: 'grace', pageSize: 50 },
    result: {
      ...ANSWER,
      data: [
        {
          id: 'release-1.0',
          notificationSource: 'custom',
          notificationSourceData: { release: { version: '1.0', notes: ['first'] } },
          actionUser: ADA,
          displayBodyMessage: 'Please have a look.',
          displayHeadlineMessageTemplate: '{actionUser} released {version}',
          displayHeadlineMessageTemplateData: { actionUser: { userId: 'ada', name: 'Ada Lovelace' }, version: '1.0' },
          metadata: { apiKey: 'demo-key', organizationId: 'acme', documentId: 'roadmap', locationId: 'chapter-2' },
          notifyUsers: { grace: true },
          notifyUsersByUserId: { grace: true },
          timestamp: 1769860682117,
        },
      ],
    },
  },
  http: {
    path: '/v1/notifications/get',
    summary: 'Get notifications',
    effect:
      'Reads notifications, newest first, by one of nine combinations of `documentId`, `locationId`, `userId`, `notificationIds`.',
    goodToKnow:
      'A page has up to 1000 notifications or 4 MiB. Repeat the call with `pageToken` while the answer has one. `order: "asc"` reverses the order.',
    description: `Reads notifications in pages, newest first. While \`result.pageToken\` is present there may be more, also after an empty page.

These combinations of filters are supported, each with \`organizationId\`. Combined filters must all match:

${FILTER_COMBINATIONS.map((filters) => `- ${filters.map((filter) => `\`${filter}\``).join(' + ')}`).join('\n')}

Meant for SDK v3 or earlier clients.`,
    examples: {
      request: {
        user: { summary: 'Of a user in a document', value: { organizationId: 'acme', documentId: 'roadmap', userId: 'grace' } },
        page: {
          summary: 'Of a document, oldest first, in pages',
          value: { organizationId: 'acme', documentId: 'roadmap', order: 'asc', pageSize: 50 },
        },
        identified: {
          summary: 'By their ids',
          value: { organizationId: 'acme', documentId: 'roadmap', notificationIds: ['release-1.0'] },
        },
      },
      result: {
        found: {
          summary: 'One notification',
          value: {
            ...ANSWER,
            data: [
              {
                id: '0b6d4c0e-7f43-4a57-9d8c-2f9b1a3c5e70',
                notificationSource: 'custom',
                notificationSourceData: {},
                actionUser: ADA,
                displayBodyMessage: 'Please have a look.',
                displayHeadlineMessageTemplate: '{actionUser} finished {place}',
                displayHeadlineMessageTemplateData: { place: 'the roadmap' },
                metadata: { apiKey: 'demo-key', organizationId: 'acme', documentId: 'roadmap' },
                notifyUsers: { grace: true },
                notifyUsersByUserId: { grace: true },
                timestamp: 1767225600000,
              },
            ],
          },
        },
        nothing: { summary: 'Nothing found', value: { ...ANSWER, data: [] } },
      },
    },
  },
});
