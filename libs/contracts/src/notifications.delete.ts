import { JSONSchema } from 'class-validator-jsonschema';
import { Described, Identifier, Identifiers, Success, WholeNumber } from './fields';
import { command, type Naming, type Refusal, type Sent } from './message';
import { refuseMisspelt } from './misspelt';
import { decodeMomentToken, PageToken } from './page-token';

const FILTERS = ['documentId', 'locationId', 'notificationIds'] as const;

/** Names by which a caller may mean some of the notifications, and that are no fields. */
const MEANS_SOME = /^(id|ids|user|users|user_?ids?)$/i;

/** The supported sets of filters, each with organizationId and in the order of FILTERS. */
export const DELETE_COMBINATIONS: readonly (readonly (typeof FILTERS)[number][])[] = [
  ['documentId'],
  ['documentId', 'notificationIds'],
  ['documentId', 'locationId'],
  ['documentId', 'locationId', 'notificationIds'],
  ['notificationIds'],
];

const SUPPORTED = DELETE_COMBINATIONS.map((filters) => filters.join(' + ')).join('; ');

export class DeleteNotificationsRequest {
  @Identifier('Organization of the notifications. An unknown organization has none.')
  organizationId: string;

  @Identifier('Only notifications of this document.', { optional: true })
  documentId?: string;

  @Identifier('Only notifications at this location.', { optional: true })
  locationId?: string;

  @Identifiers(
    'Only these notifications. An empty list matches nothing. A JSON library that leaves empty lists out deletes all of the document.',
    { optional: true },
  )
  notificationIds?: string[];

  @WholeNumber('Most notifications that the call deletes; it also ends at 10,000 users and 8 MiB. Default 256.', 1, 256, {
    optional: true,
  })
  pageSize?: number;

  @PageToken(decodeMomentToken, {
    maxLength: 64,
    description: '`result.pageToken` of the previous call with the same filters. Opaque.',
  })
  pageToken?: string;

  /** A filter by user, as notifications/get has it, and an `id`, as notifications have it, are refused: ignored, they would delete too much. */
  static refuse(request: DeleteNotificationsRequest, sent: Sent, named: Naming): Refusal | undefined {
    const ignored = Object.keys(sent).find((name) => MEANS_SOME.test(name));
    if (ignored !== undefined)
      return {
        message: `${named(ignored)} is not a filter of a deletion. Supported, each with organizationId: ${SUPPORTED}.`,
        fields: [ignored],
      };
    const misspelt = refuseMisspelt(DeleteNotificationsRequest, sent, named);
    if (misspelt) return misspelt;
    const given = FILTERS.filter((filter) => request[filter] !== undefined);
    if (!DELETE_COMBINATIONS.some((filters) => String(filters) === String(given))) {
      const [first = 'documentId', ...others] = given;
      const message = `This combination of filters is not supported. Supported, each with organizationId: ${SUPPORTED}.`;
      return { message, fields: [first, ...others] };
    }
    return request.notificationIds && request.pageToken !== undefined
      ? { message: `${named('pageToken')} is not allowed together with notificationIds`, fields: ['pageToken'] }
      : undefined;
  }
}

/** Outcome for one notification. */
@JSONSchema({ description: 'Outcome for one notification.' })
export class DeletedNotification {
  @Described({ type: 'boolean', description: 'Whether the notification is deleted, by this call or an earlier one.' })
  success: boolean;

  @Described({ type: 'string', description: '`Notification deleted.` or `Failed to delete notification.`' })
  message: string;
}

export class DeleteNotificationsResult {
  @Success()
  status: 'success';

  @Described({ type: 'string', description: '`Notification(s) deleted successfully.`' })
  message: string;

  @Described({
    type: 'object',
    additionalProperties: { $ref: '#/components/schemas/DeletedNotification' },
    description:
      'The key is the id of a notification. An id of `notificationIds` without an entry was left, because one call deletes a limited number: the same call goes on.',
  })
  data: Record<string, DeletedNotification>;

  @Described(
    { type: 'string', description: 'Present when notifications are left. The same call with it goes on.' },
    { optional: true },
  )
  pageToken?: string;
}

const DELETED = { success: true, message: 'Notification deleted.' };
const ANSWER = { status: 'success', message: 'Notification(s) deleted successfully.' } as const;
const ONE_OF_TWO = {
  ...ANSWER,
  data: { 'release-1.0': DELETED, unknown: { success: false, message: 'Failed to delete notification.' } },
};

export const DeleteNotifications = command('notifications.delete.v1', DeleteNotificationsRequest, DeleteNotificationsResult, {
  open: true,
  changesRows: true,
  purpose: `Deletes notifications for all their users. Supported filters, each with \`organizationId\`: ${SUPPORTED}. A success means that no query returns them any more. Their ids stay taken for 25 hours, so that a repeated command does not bring them back. Needs a \`message_id\`: a redelivered command deletes nothing that was stored after its first delivery.`,
  example: {
    request: { organizationId: 'acme', documentId: 'roadmap', notificationIds: ['release-1.0', 'unknown'] },
    result: ONE_OF_TWO,
  },
  http: {
    path: '/v1/notifications/delete',
    summary: 'Delete notifications',
    effect: 'Deletes notifications for all their users, by their ids, or those of a document or a location.',
    goodToKnow:
      'One call deletes up to 256. Repeat the call with `pageToken` while the answer has one. The ids stay taken for 25 hours, so that a repeated add does not bring a notification back.',
    description: `Deletes notifications for all their users. An answer of 200 means that no get returns them any more.

These combinations of filters are supported, each with \`organizationId\`. Combined filters must all match:

${DELETE_COMBINATIONS.map((filters) => `- ${filters.map((filter) => `\`${filter}\``).join(' + ')}`).join('\n')}

One call deletes at most 256 notifications (or \`pageSize\`), the oldest first, with at most 10,000 users named in them and 8 MiB. While \`result.pageToken\` is
present, the same call with it deletes the next ones. Notifications that are stored after the first call stay. With \`notificationIds\` there is
no token: the same call again deletes the ids without an entry in \`data\`.

An id stays taken for 25 hours. Adding the same notification again is answered with success and stores nothing.`,
    examples: {
      request: {
        identified: {
          summary: 'By their ids',
          value: { organizationId: 'acme', notificationIds: ['release-1.0', 'unknown'] },
        },
        document: { summary: 'Of a document', value: { organizationId: 'acme', documentId: 'roadmap' } },
      },
      result: {
        identified: { summary: 'One was there, one was not', value: ONE_OF_TWO },
        more: {
          summary: 'More are left',
          value: { ...ANSWER, data: { 'release-1.0': DELETED }, pageToken: 'WzE3NjcyMjU2MDAwMDBd' },
        },
      },
    },
  },
});
