import { Described, Identifier, Identifiers, LIMITS, Success, WholeNumber } from './fields';
import { query } from './message';
import { decodeUserToken, PageToken } from './page-token';

export class GetUsersRequest {
  @Identifier('Organization to read. An unknown organization has no users.')
  organizationId: string;

  @Identifier('Only users who were added to this document. When folderId is given too, the document counts.', { optional: true })
  documentId?: string;

  @Identifier('Only users who were added to this folder.', { optional: true })
  folderId?: string;

  @Identifiers('Only these users. An empty list matches nobody.', { optional: true })
  userIds?: string[];

  // A page of 1000 users has at most 3.3 MB: identifiers, names and e-mail addresses are bounded.
  @WholeNumber('Most users in a page. Default 1000.', 1, LIMITS.listLength, { optional: true })
  pageSize?: number;

  @PageToken(decodeUserToken)
  pageToken?: string;
}

/** A user as returned. Fields that were never sent are empty. */
export class UserItem {
  @Identifier('Identifier of the user.')
  userId: string;

  @Described({ type: 'string', description: 'Display name, else empty.' })
  name: string;

  @Described({ type: 'string', description: 'E-mail address, else empty.' })
  email: string;

  @Described({ type: 'string', description: 'Initial; empty when neither an initial nor a name was sent.' })
  initial: string;
}

export class GetUsersResult {
  @Success()
  status: 'success';

  @Described({ type: 'string', description: '`User(s) retrieved successfully.`' })
  message: string;

  @Described({
    type: 'array',
    items: { $ref: '#/components/schemas/UserItem' },
    maxItems: LIMITS.listLength,
    description:
      'The users of this page, in the order of their ids, byte by byte. It may be empty and have a `pageToken`, when very many have left.',
  })
  data: UserItem[];

  @Described({ type: 'string', description: 'Present when there may be more users.' }, { optional: true })
  pageToken?: string;
}

const RESULT: GetUsersResult = {
  status: 'success',
  message: 'User(s) retrieved successfully.',
  data: [{ userId: 'ada', name: 'Ada Lovelace', email: 'ada@example.com', initial: 'A' }],
};

export const GetUsers = query('users.get.v1', GetUsersRequest, GetUsersResult, {
  open: true,
  purpose:
    'Reads the users who were added to an organization, a folder or a document, in pages by `userId`. Users who were added only elsewhere, and removed users, are left out.',
  example: { request: { organizationId: 'acme', documentId: 'roadmap', pageSize: 50 }, result: RESULT },
  http: {
    path: '/v1/users/get',
    summary: 'Get users',
    effect: 'Reads the users who were added to an organization, a document or a folder, or those of them in `userIds`.',
    goodToKnow:
      'A page has up to 1000 users, in the order of their ids. Repeat the call with `pageToken` while the answer has one.',
    description: `Reads users in pages, in the order of their ids. While \`result.pageToken\` is present there may be more, also after an empty page.

- neither \`documentId\` nor \`folderId\`: the users who were added to the organization;
- \`folderId\`: the users who were added to that folder;
- \`documentId\`: the users who were added to that document; \`folderId\` is ignored.

\`userIds\` leaves out all others.`,
    examples: {
      request: {
        organization: { summary: 'Of the organization', value: { organizationId: 'acme' } },
        document: { summary: 'Of a document, in pages', value: { organizationId: 'acme', documentId: 'roadmap', pageSize: 50 } },
        chosen: { summary: 'Some of a folder', value: { organizationId: 'acme', folderId: 'plans', userIds: ['ada', 'grace'] } },
      },
      result: {
        found: { summary: 'One user', value: RESULT },
        nothing: { summary: 'Nobody', value: { ...RESULT, data: [] } },
      },
    },
  },
});
