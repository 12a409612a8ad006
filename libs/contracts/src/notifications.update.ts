import { JSONSchema } from 'class-validator-jsonschema';
import { Described, Identifier, Identifiers, Int64, LIMITS, NestedList, Success, WholeNumber } from './fields';
import { command, type Naming, type Refusal, type Sent } from './message';
import { refuseMisspelt } from './misspelt';

/** Fields of a notification that an update does not change. */
const CONTENT = [
  'actionUser',
  'displayBodyMessage',
  'displayHeadlineMessageTemplate',
  'displayHeadlineMessageTemplateData',
  'notificationSourceData',
  'notifyAll',
  'notifyUsers',
];

/** Fields of all entries in which a misspelt list is looked for: a body may have 100,000, and 10,000 take up to 15 ms. */
const MOST_COMPARED = 10_000;

/** One notification to mark. `persistReadForUsers` is ignored: read notifications always stay in the inbox. */
export class UpdatedNotification {
  @Identifier('Identifier of the notification.')
  id: string;

  @Identifiers('Users who have read it.', { optional: true })
  readByUserIds?: string[];

  @Identifiers('Users who have not read it.', { optional: true })
  unreadByUserIds?: string[];
}

export class UpdateNotificationsRequest {
  @Identifier('Organization of the notifications. An unknown organization has none.')
  organizationId: string;

  @Identifier('Only together with notifications: one of another document is not updated.', { optional: true })
  documentId?: string;

  @Identifier('Only together with notifications: one at another location is not updated.', { optional: true })
  locationId?: string;

  @NestedList(
    () => UpdatedNotification,
    'Notifications to mark, each once, with at most 1000 users in all their lists. A user who occurs twice in a list counts once.',
    {
      min: 1,
      optional: true,
    },
  )
  notifications?: UpdatedNotification[];

  @Identifier('User who has read everything up to `readUpTo`.', { optional: true })
  userId?: string;

  @WholeNumber(
    'Epoch milliseconds, for example `result.asOf` of notifications/inbox: everything that the user is shown up to this time is read. A time in the future counts as now.',
    0,
    Number.MAX_SAFE_INTEGER,
    { optional: true },
  )
  readUpTo?: number;

  static refuse(request: UpdateNotificationsRequest, sent: Sent, named: Naming): Refusal | undefined {
    const { notifications, userId, readUpTo, documentId, locationId } = request;
    const isUpTo = userId !== undefined && readUpTo !== undefined;
    if (notifications ? userId !== undefined || readUpTo !== undefined : !isUpTo)
      return {
        message: `${named()} must have either notifications, or userId and readUpTo`,
        fields: ['notifications', 'userId', 'readUpTo'],
      };
    if (!notifications && (documentId !== undefined || locationId !== undefined))
      return {
        message: `${named('documentId')} and ${named('locationId')} are only allowed together with notifications`,
        fields: ['documentId', 'locationId'],
      };
    const misspelt = refuseMisspelt(UpdateNotificationsRequest, sent, named);
    if (misspelt || !notifications) return misspelt;
    return problemOf(notifications, sent.notifications as readonly Sent[], named);
  }
}

function problemOf(notifications: readonly UpdatedNotification[], sent: readonly Sent[], named: Naming): Refusal | undefined {
  const refusal = (field: string, problem: string): Refusal => ({ message: `${named(field)} ${problem}`, fields: [field] });
  const ids = new Set<string>();
  let pairs = 0;
  let compared = 0;
  for (const [index, { id, readByUserIds = [], unreadByUserIds = [] }] of notifications.entries()) {
    const path = `notifications[${index}]`;
    const content = CONTENT.find((field) => Object.hasOwn(sent[index], field));
    if (content) return refusal(`${path}.${content}`, 'cannot be changed: delete the notification and add another');
    compared += Object.keys(sent[index]).length;
    const misspelt =
      compared <= MOST_COMPARED && refuseMisspelt(UpdatedNotification, sent[index], (field) => named(`${path}.${field}`));
    if (misspelt) return { ...misspelt, fields: [`${path}.${misspelt.fields[0]}`] };
    if (ids.has(id)) return refusal(`${path}.id`, 'occurs twice');
    ids.add(id);
    const [read, unread] = [new Set(readByUserIds), new Set(unreadByUserIds)];
    if (readByUserIds.some((userId) => unread.has(userId)))
      return refusal(path, 'has a user in readByUserIds and in unreadByUserIds');
    pairs += read.size + unread.size;
  }
  return pairs > LIMITS.listLength
    ? refusal('notifications', `must have at most ${LIMITS.listLength} users in all their lists`)
    : undefined;
}

/** Outcome for one notification. */
@JSONSchema({ description: 'Outcome for one notification.' })
export class MarkedNotification {
  @Described({ type: 'boolean', description: 'Whether the notification was marked.' })
  success: boolean;

  @Described({ type: 'string', description: '`Notification updated.` or `Failed to update notification.`' })
  message: string;
}

export class UpdateNotificationsResult {
  @Success()
  status: 'success';

  @Described({ type: 'string', description: '`Notification(s) updated successfully.`' })
  message: string;

  @Described({
    type: 'object',
    additionalProperties: { $ref: '#/components/schemas/MarkedNotification' },
    description: 'The key is the id of a notification. Empty with `readUpTo`.',
  })
  data: Record<string, MarkedNotification>;

  @Int64(
    'With `readUpTo`: the time up to which all is read. Earlier than the one that was sent: the same call again goes on, unless the latter is in the future.',
    { optional: true },
  )
  readUpTo?: number;
}

const ANSWER = { status: 'success', message: 'Notification(s) updated successfully.' } as const;
const EACH = {
  ...ANSWER,
  data: {
    'release-1.0': { success: true, message: 'Notification updated.' },
    unknown: { success: false, message: 'Failed to update notification.' },
  },
};
const notifications = [
  { id: 'release-1.0', readByUserIds: ['grace'], unreadByUserIds: ['ada'] },
  { id: 'unknown', readByUserIds: ['grace'] },
];
const UP_TO = { organizationId: 'acme', userId: 'grace', readUpTo: 1769860690000 };

export const UpdateNotifications = command('notifications.update.v1', UpdateNotificationsRequest, UpdateNotificationsResult, {
  open: true,
  changesRows: true,
  purpose:
    'Marks notifications as read or unread: either single ones for some users (`notifications`), or everything that one user is shown up to a time (`userId` and `readUpTo`). A repetition is harmless. A notification that becomes visible while the call runs stays unread.',
  example: { request: { organizationId: 'acme', notifications }, result: EACH },
  http: {
    path: '/v1/notifications/update',
    summary: 'Mark notifications as read or unread',
    effect:
      'Marks single notifications as read or unread for users, or everything that a user is shown up to a time (`userId` and `readUpTo`).',
    goodToKnow:
      'Send `result.asOf` of the inbox as `readUpTo`: what comes later stays unread. For a new member one such call marks the older notifications to all as read.',
    description: `Marks notifications as read or unread for their users. An answer of 200 means that the next inbox shows it. There are two forms:

- \`notifications\`: single notifications, each with the users who have read it or not.
- \`userId\` and \`readUpTo\`: everything that the user is shown up to this time is read. Send \`result.asOf\` of notifications/inbox.
  What is being stored meanwhile stays unread. A time that is not later than that of an earlier call changes nothing. \`result.readUpTo\` is the time
  that counts. It is earlier than the one that was sent when there are very many new ones: the same call again goes on.

A user who gets access to a document later finds older notifications to all unread, unless the user has a time up to which all is read.`,
    examples: {
      request: {
        each: { summary: 'Single notifications', value: { organizationId: 'acme', notifications } },
        upTo: { summary: 'Everything up to a time', value: UP_TO },
      },
      result: {
        each: { summary: 'One was there, one was not', value: EACH },
        upTo: { summary: 'Everything up to a time', value: { ...ANSWER, data: {}, readUpTo: 1769860690000 } },
      },
    },
  },
});
