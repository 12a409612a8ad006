import { JSONSchema } from 'class-validator-jsonschema';
import { Described, Field, Identifier, LIMITS, NestedList, Success } from './fields';
import { command } from './message';
import { USED_BEFORE } from './idempotency';

const isString = (value: unknown) => (typeof value === 'string' ? undefined : ' must be a string');

/**
 * One user to add. Wrong types and a bad userId refuse the whole call. A name, e-mail or initial with a bad length, bad characters or a bad form
 * fails only its own entry, and the others are stored.
 */
export class UserEntry {
  @Identifier('Identifier of the user inside the organization.')
  userId: string;

  @Field(
    isString,
    { type: 'string', maxLength: LIMITS.nameLength, description: 'Display name, on one line.' },
    { optional: true },
  )
  name?: string;

  @Field(
    isString,
    {
      type: 'string',
      maxLength: LIMITS.nameLength,
      description:
        'E-mail address: one @ with text on both sides, no white space. Leave it out when there is none: a stored one stays.',
    },
    { optional: true },
  )
  email?: string;

  @Field(
    isString,
    {
      type: 'string',
      maxLength: LIMITS.initialLength,
      description: 'Initial. When none was ever sent, the first letter of the name in upper case.',
    },
    { optional: true },
  )
  initial?: string;
}

export class AddUsersRequest {
  @Identifier('Target organization; created when it does not exist.')
  organizationId: string;

  @Identifier('Adds the users to this document only. When folderId is given too, the document counts.', { optional: true })
  documentId?: string;

  @Identifier('Adds the users to this folder only.', { optional: true })
  folderId?: string;

  @NestedList(() => UserEntry, 'Users to add. Entries with the same userId are one, in which the later values win.', { min: 1 })
  users: UserEntry[];
}

/** Outcome for one user. */
@JSONSchema({ description: 'Outcome for one user.' })
export class AddedUser {
  @Described({ type: 'boolean', description: 'Whether the user is stored.' })
  success: boolean;

  @Described({ type: 'string', pattern: '^[0-9a-f]{32}$', description: 'Lower-case hex MD5 of the userId.' })
  id: string;

  @Described({ type: 'string', description: '`User added.`, `User updated.`, or the reason of a failure.' })
  message: string;
}

export class AddUsersResult {
  @Success('Always the same, also when some users failed: see their entries.')
  status: 'success';

  @Described({ type: 'string', description: '`User(s) processed successfully.`, or the number of failed users.' })
  message: string;

  @Described({
    type: 'object',
    additionalProperties: { $ref: '#/components/schemas/AddedUser' },
    description: 'One entry for each submitted userId, which is its key.',
  })
  data: Record<string, AddedUser>;
}

const ADA = { userId: 'ada', name: 'Ada Lovelace', email: 'ada@example.com' };
const GRACE = { userId: 'grace', name: 'Grace Hopper', email: 'grace@example.com' };
const RESULT: AddUsersResult = {
  status: 'success',
  message: 'User(s) processed successfully.',
  data: {
    ada: { success: true, id: '8c8d357b5e872bbacd45197626bd5759', message: 'User added.' },
    grace: { success: true, id: '15e5c87b18c1289d45bb4a72961b58e8', message: 'User added.' },
  },
};

export const AddUsers = command('users.add.v1', AddUsersRequest, AddUsersResult, {
  open: true,
  // A user of 20 bytes is three rows, and costs as much as a recipient of 80.
  lightBytes: 512,
  purpose:
    'Adds users to an organization, a folder or a document. Existing users are updated: fields that are not sent keep their values. A user who cannot be stored fails alone. A success means that the users are committed.',
  example: {
    request: {
      organizationId: 'acme',
      documentId: 'roadmap',
      users: [ADA, { userId: 'grace', name: 'Grace Hopper' }],
    },
    result: RESULT,
  },
  errors: { FAILED_PRECONDITION: USED_BEFORE },
  http: {
    path: '/v1/users/add',
    summary: 'Add users',
    effect:
      'Adds up to 1000 users to an organization. With `documentId` or `folderId` it adds them to that document or folder only. Existing users are updated.',
    goodToKnow: 'Each user has an entry of its own in the answer. A bad e-mail address fails only its own entry.',
    description: `Adds users to an organization, a folder or a document, at exactly one level:

- neither \`documentId\` nor \`folderId\`: to the organization, whose documents they may open unless access is restricted;
- \`folderId\`: to that folder and its documents only;
- \`documentId\`: to that document only; \`folderId\` is ignored.

A missing organization, folder or document is created. An existing user is updated: fields that are not sent keep their values. A user with an
invalid name, e-mail or initial fails alone, with \`success: false\` and the reason, and the others are stored.`,
    idempotent: true,
    examples: {
      request: {
        document: { summary: 'To a document', value: { organizationId: 'acme', documentId: 'roadmap', users: [ADA, GRACE] } },
        folder: { summary: 'To a folder', value: { organizationId: 'acme', folderId: 'plans', users: [GRACE] } },
        organization: { summary: 'To the organization', value: { organizationId: 'acme', users: [{ ...ADA, initial: 'A' }] } },
      },
      result: {
        added: { summary: 'Both are stored', value: RESULT },
      },
    },
  },
});
