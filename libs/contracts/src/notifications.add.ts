import {
  Data,
  dataProblem,
  Described,
  Field,
  Flag,
  Identifier,
  identifierProblem,
  LIMITS,
  Nested,
  NestedList,
  objectProblem,
  Success,
  Text,
  textProblem,
} from './fields';
import { USED_BEFORE } from './idempotency';
import { command } from './message';

/** A user named in a notification. Other fields are dropped. */
export class NotificationUser {
  @Identifier('Identifier of the user.')
  userId: string;

  @Text('Display name.', LIMITS.nameLength, { optional: true })
  name?: string;

  @Text('E-mail address.', LIMITS.nameLength, { optional: true })
  email?: string;
}

const nameProblem = textProblem(LIMITS.nameLength);

function userProblem(value: unknown): string | undefined {
  const problem = objectProblem(value);
  if (problem) return problem;
  const { userId, name, email } = value as Record<string, unknown>;
  const inside = (field: string, found: string | undefined) => found && `.${field}${found}`;
  return (
    inside('userId', userId === undefined ? ' is required and must be a string' : identifierProblem(userId)) ??
    inside('name', name === undefined ? undefined : nameProblem(name)) ??
    inside('email', email === undefined ? undefined : nameProblem(email))
  );
}

/** actionUser and recipientUser hold users (recipientUser may be a plain string), any other key a string. */
function templateDataProblem(value: unknown): string | undefined {
  const problem = dataProblem(value);
  if (problem) return problem;
  for (const [key, entry] of Object.entries(value as Record<string, unknown>)) {
    const holdsUser = key === 'actionUser' || (key === 'recipientUser' && typeof entry !== 'string');
    const wrong = holdsUser ? userProblem(entry) : typeof entry === 'string' ? undefined : ' must be a string';
    if (wrong) return `${/^\w{1,64}$/.test(key) ? `.${key}` : ' has a value that'}${wrong}`;
  }
  return undefined;
}

export class AddNotificationRequest {
  @Identifier('Organization of the notification.')
  organizationId: string;

  @Identifier('Document of the notification.')
  documentId: string;

  @Identifier('Location inside the document.', { optional: true })
  locationId?: string;

  @Nested(() => NotificationUser, 'User who caused the notification.')
  actionUser: NotificationUser;

  @Identifier(
    'Identity of the notification inside the organization. A repetition with the same content stores nothing again; with other content the error is ALREADY_EXISTS. An absent field is other content than its default. The service creates the id when absent.',
    { optional: true },
  )
  notificationId?: string;

  @Text(
    'Headline with variables in curly brackets, for example `{actionUser} mentioned {recipientUser}`.',
    LIMITS.messageLength,
    {
      min: 1,
    },
  )
  displayHeadlineMessageTemplate: string;

  @Field(
    templateDataProblem,
    {
      type: 'object',
      // Patterns for these two as well: types of TypeScript with optional fields beside unnamed ones do not compile.
      patternProperties: {
        '^actionUser$': { $ref: '#/components/schemas/NotificationUser', description: 'A user.' },
        '^recipientUser$': {
          anyOf: [{ $ref: '#/components/schemas/NotificationUser' }, { type: 'string' }],
          description: 'A user, or text.',
        },
        // Without a lookahead, which Go lacks. It leaves out all names that begin as these two do; the check decides.
        '^([^ar]|a[^c]|r[^e])': { type: 'string', description: 'Text for the variable of this name.' },
      },
      // Most generators know no patterns, and make a map of these.
      additionalProperties: { anyOf: [{ $ref: '#/components/schemas/NotificationUser' }, { type: 'string' }] },
      description: 'Values of the variables. They are returned as sent and not evaluated. At most 64 KiB as JSON.',
    },
    { optional: true },
  )
  displayHeadlineMessageTemplateData?: Record<string, unknown>;

  @Text('Secondary message.', LIMITS.messageLength, { optional: true })
  displayBodyMessage?: string;

  @NestedList(() => NotificationUser, 'Users to notify. A user named twice counts once.', { optional: true })
  notifyUsers?: NotificationUser[];

  @Flag('Notify everyone who has access to the document. Absent: true when notifyUsers is empty or absent.', { optional: true })
  notifyAll?: boolean;

  @Data('Data of the notification source, returned as sent. At most 64 KiB as JSON.', { optional: true })
  notificationSourceData?: Record<string, unknown>;

  @Flag('false: the document must exist already, else NOT_FOUND.', { optional: true })
  createDocument?: boolean;

  @Flag('false: the organization must exist already, else NOT_FOUND.', { optional: true })
  createOrganization?: boolean;
}

export class AddedNotification {
  @Described({ type: 'boolean', description: 'Always true.' })
  success: boolean;

  @Described({ type: 'string', description: '`Notification added successfully.`' })
  message: string;
}

export class AddNotificationResult {
  @Success()
  status: 'success';

  @Described({ type: 'string', description: '`Notification added successfully.`' })
  message: string;

  @Nested(() => AddedNotification, 'The same once more, as the callable-function shape has it.')
  data: AddedNotification;
}

const ADA = { userId: 'ada', name: 'Ada Lovelace', email: 'ada@example.com' };
const GRACE = { userId: 'grace', name: 'Grace Hopper', email: 'grace@example.com' };
const ADDED: AddNotificationResult = {
  status: 'success',
  message: 'Notification added successfully.',
  data: { success: true, message: 'Notification added successfully.' },
};

export const AddNotification = command('notifications.add.v1', AddNotificationRequest, AddNotificationResult, {
  open: true,
  purpose:
    'Stores one notification and its recipients. A success means that it is committed: the next query returns it. Its id is `notificationId`, else the `message_id` of the command: published again with the same id, it is stored once.',
  example: {
    request: {
      organizationId: 'acme',
      documentId: 'roadmap',
      locationId: 'chapter-2',
      notificationId: 'release-1.0',
      actionUser: ADA,
      displayHeadlineMessageTemplate: '{actionUser} released {version}',
      displayHeadlineMessageTemplateData: { actionUser: { userId: 'ada', name: 'Ada Lovelace' }, version: '1.0' },
      displayBodyMessage: 'Please have a look.',
      notifyUsers: [{ userId: 'grace', name: 'Grace Hopper' }],
      notificationSourceData: { release: { version: '1.0', notes: ['first'] } },
    },
    result: ADDED,
  },
  errors: {
    FAILED_PRECONDITION: USED_BEFORE,
    NOT_FOUND: {
      when: 'The organization or the document does not exist, and its `create…` flag is `false`. Nothing was stored.',
      message: 'The document does not exist.',
    },
    ALREADY_EXISTS: {
      when: 'The notificationId exists with other content, which does not change.',
      message: 'A notification with this notificationId and other content exists.',
    },
  },
  http: {
    path: '/v1/notifications/add',
    summary: 'Add a notification',
    effect: 'Stores a notification for the users in `notifyUsers`, or for all users who can see the document (`notifyAll`).',
    goodToKnow:
      'A repeated `notificationId` with the same content stores nothing again. Without a `notificationId`, the header `x-notification-id` of the answer has the new id.',
    description: `Stores one notification and its recipients. An answer of 200 means that it is committed: the next get returns it.

The id is in the header \`x-notification-id\`. Organization and document are created when they do not exist, unless their \`create…\` flag is
\`false\`. \`notifyAll\` reaches all users who may open the document, also users who get access later.`,
    idempotent: true,
    examples: {
      request: {
        mention: {
          summary: 'To the users it names',
          value: {
            organizationId: 'acme',
            documentId: 'roadmap',
            actionUser: ADA,
            displayHeadlineMessageTemplate: '{actionUser} mentioned {recipientUser} in {place}',
            displayHeadlineMessageTemplateData: { actionUser: ADA, recipientUser: GRACE, place: 'the roadmap' },
            displayBodyMessage: 'Please have a look.',
            notifyUsers: [GRACE],
          },
        },
        everyone: {
          summary: 'To everyone with access to the document',
          value: {
            organizationId: 'acme',
            documentId: 'roadmap',
            locationId: 'chapter-2',
            actionUser: ADA,
            displayHeadlineMessageTemplate: '{actionUser} finished the chapter',
            notifyAll: true,
          },
        },
        identified: {
          summary: 'With an id of its own: may be repeated',
          value: {
            organizationId: 'acme',
            documentId: 'roadmap',
            notificationId: 'release-1.0',
            actionUser: ADA,
            displayHeadlineMessageTemplate: '{actionUser} released {version}',
            displayHeadlineMessageTemplateData: { version: '1.0' },
            notificationSourceData: { release: { version: '1.0', notes: ['first'] } },
          },
        },
      },
      result: { added: { summary: 'It is stored', value: ADDED } },
    },
  },
  replyHeaders: { 'x-notification-id': { description: 'Identifier of the notification, in UTF-8.', example: 'release-1.0' } },
});
