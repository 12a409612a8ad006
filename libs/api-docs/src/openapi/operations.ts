import type { Message } from '@app/contracts/message';
import { AddNotification } from '@app/contracts/notifications.add';
import { FILTER_COMBINATIONS, GetNotifications } from '@app/contracts/notifications.get';
import { AddUsers } from '@app/contracts/users.add';
import { errorResponses } from './errors';
import { ADD_NOTIFICATION, ADD_USERS, GET_NOTIFICATIONS } from './examples';
import { schemaRef } from './schemas';

interface Operation {
  path: string;
  message: Message<object, object>;
  tag: 'Users' | 'Notifications';
  summary: string;
  description: string;
  examples: { request: object; answer: object };
  /** Takes an Idempotency-Key. */
  repeatable: boolean;
}

export const OPERATIONS: readonly Operation[] = [
  {
    path: '/v1/users/add',
    message: AddUsers,
    tag: 'Users',
    summary: 'Add users',
    description: `Adds users to an organization, a folder or a document, at exactly one level:

- neither \`documentId\` nor \`folderId\`: to the organization, whose documents they may open unless access is restricted;
- \`folderId\`: to that folder and its documents only;
- \`documentId\`: to that document only; \`folderId\` is ignored.

A missing organization, folder or document is created. An existing user is updated: fields that are not sent keep their values. A user with an
invalid name, e-mail or initial fails alone, with \`success: false\` and the reason, and the others are stored.`,
    examples: ADD_USERS,
    repeatable: true,
  },
  {
    path: '/v1/notifications/add',
    message: AddNotification,
    tag: 'Notifications',
    summary: 'Add a notification',
    description: `Stores one notification and its recipients. An answer of 200 means that it is committed: the next get returns it.

The id is in the header \`x-notification-id\`. Organization and document are created when they do not exist, unless their \`create…\` flag is
\`false\`. \`notifyAll\` reaches all users who may open the document, also users who get access later.`,
    examples: ADD_NOTIFICATION,
    repeatable: true,
  },
  {
    path: '/v1/notifications/get',
    message: GetNotifications,
    tag: 'Notifications',
    summary: 'Get notifications',
    description: `Reads notifications in pages, newest first. While \`result.pageToken\` is present there are more.

These combinations of filters are supported, each with \`organizationId\`. Combined filters must all match:

${FILTER_COMBINATIONS.map((filters) => `- ${filters.map((filter) => `\`${filter}\``).join(' + ')}`).join('\n')}

Meant for SDK v3 or earlier clients.`,
    examples: GET_NOTIFICATIONS,
    repeatable: false,
  },
];

/** The Path Item of one operation. */
export function pathItemOf({ message, repeatable, examples, ...operation }: Operation): object {
  const isAddNotification = message === AddNotification;
  return {
    post: {
      operationId: operation.path.slice('/v1/'.length).replace(/\/(\w)/, (_, letter: string) => letter.toUpperCase()),
      tags: [operation.tag],
      summary: operation.summary,
      description: operation.description,
      parameters: [
        ...(repeatable ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
        { $ref: '#/components/parameters/RequestId' },
      ],
      requestBody: { required: true, content: envelope('data', schemaRef(message.request), examples.request) },
      responses: {
        200: {
          description: message.kind === 'command' ? 'Done and committed.' : 'The result.',
          headers: {
            'x-request-id': { $ref: '#/components/headers/RequestId' },
            ...(isAddNotification && { 'x-notification-id': { $ref: '#/components/headers/NotificationId' } }),
          },
          content: envelope('result', schemaRef(message.result), examples.answer),
        },
        ...errorResponses(
          (scope) =>
            scope === undefined ||
            (scope === 'repeatable operations' && repeatable) ||
            (scope === 'notifications/add' && isAddNotification),
        ),
      },
    },
  };
}

const envelope = (key: 'data' | 'result', schema: object, examples: object) => ({
  'application/json': { schema: { type: 'object', required: [key], properties: { [key]: schema } }, examples },
});
