import { JSONSchema } from 'class-validator-jsonschema';
import { Described, Identifier, Identifiers, Success } from './fields';
import { USED_BEFORE } from './idempotency';
import { command, type Naming, type Refusal, type Sent } from './message';
import { refuseMisspelt } from './misspelt';

export class DeleteUsersRequest {
  @Identifier('Organization of the users.')
  organizationId: string;

  @Identifier('Removes the users from this document only. When folderId is given too, the document counts.', { optional: true })
  documentId?: string;

  @Identifier('Removes the users from this folder only.', { optional: true })
  folderId?: string;

  @Identifiers('Users to remove. A userId that occurs twice counts once.', { min: 1 })
  userIds: string[];

  static refuse(_: DeleteUsersRequest, sent: Sent, named: Naming): Refusal | undefined {
    return refuseMisspelt(DeleteUsersRequest, sent, named);
  }
}

@JSONSchema({ description: 'Outcome for one user.' })
export class DeletedUser {
  @Described({ type: 'boolean', description: 'Whether the user was a member there until now.' })
  success: boolean;

  @Described({ type: 'string', description: '`User removed.`, or `User does not exist.` for a user who was not a member there.' })
  message: string;
}

export class DeleteUsersResult {
  @Success('Always the same, also when some users were not there: see their entries.')
  status: 'success';

  @Described({ type: 'string', description: 'Always `User(s) deleted successfully.`' })
  message: string;

  @Described({
    type: 'object',
    additionalProperties: { $ref: '#/components/schemas/DeletedUser' },
    description: 'One entry for each submitted userId, which is its key.',
  })
  data: Record<string, DeletedUser>;
}

const RESULT: DeleteUsersResult = {
  status: 'success',
  message: 'User(s) deleted successfully.',
  data: {
    ada: { success: true, message: 'User removed.' },
    nobody: { success: false, message: 'User does not exist.' },
  },
};

export const DeleteUsers = command('users.delete.v1', DeleteUsersRequest, DeleteUsersResult, {
  open: true,
  purpose:
    'Removes users from a document, a folder, or an organization with all its folders and documents. Name, e-mail address and initial stay stored, and so do notifications that name the users. A success means that the removal is committed.',
  example: {
    request: { organizationId: 'acme', documentId: 'roadmap', userIds: ['ada', 'nobody'] },
    result: RESULT,
  },
  errors: { FAILED_PRECONDITION: USED_BEFORE },
  http: {
    path: '/v1/users/delete',
    summary: 'Remove users',
    effect:
      'Removes up to 1000 users from a document, from a folder, or with neither from the organization with all its folders and documents.',
    goodToKnow:
      'Contact lists and access change at once, `notifications/get` within a second. Name and e-mail address stay, and so do notifications that name the user.',
    description: `Ends memberships of users, at one level:

- neither \`documentId\` nor \`folderId\`: all memberships in the organization, those of its folders and documents included;
- \`folderId\`: the membership in that folder;
- \`documentId\`: the membership in that document; \`folderId\` is ignored.

Contact lists and access checks leave the users out at once. \`notifications/get\` leaves out within a second what only \`notifyAll\` brought
them. Notifications that name them in \`notifyUsers\` stay theirs. Details stay stored, so that a user who is added again has them again. An
organization that does not exist is like an empty one.`,
    idempotent: true,
    examples: {
      request: {
        document: {
          summary: 'From a document',
          value: { organizationId: 'acme', documentId: 'roadmap', userIds: ['ada', 'nobody'] },
        },
        organization: { summary: 'From the organization', value: { organizationId: 'acme', userIds: ['ada'] } },
      },
      result: { removed: { summary: 'One of two was a member', value: RESULT } },
    },
  },
});
