import { ACCESS_TYPES, type AccessType } from './access';
import { Described, Flag, Identifier, Identifiers, Int64, NestedList, OneOf, WholeNumber } from './fields';
import { event } from './event';
import { EVENT_TYPES } from './event-types';
import { MOST_ERASED } from './users.erase';

const Republished = () =>
  Flag('Present and true when the event repeats existing data and nothing has changed, see `npm run events`.', {
    optional: true,
  });

/** The current details of a user. */
export class UserOfEvent {
  @Identifier('Identifier of the user inside the organization.')
  userId: string;

  @Described({ type: 'string', description: 'Display name; absent when none was sent.' }, { optional: true })
  name?: string;

  @Described({ type: 'string', description: 'E-mail address; absent when none was sent.' }, { optional: true })
  email?: string;

  @Described({ type: 'string', description: 'Initial; absent when neither an initial nor a name was sent.' }, { optional: true })
  initial?: string;

  @Int64(
    'Grows with every change of this user. Absent when another call changes the user at the same time: the event of that call has it.',
    { minimum: 1, optional: true },
  )
  version?: number;

  @WholeNumber(
    'Version of the membership. The user is a member while it is greater than every `version` in `user.removed.v1` for the same level, and for the whole organization. Absent counts as 0: the event comes from an earlier version.',
    0,
    Number.MAX_SAFE_INTEGER,
    { optional: true },
  )
  membership?: number;
}

export class UserAddedData {
  @Identifier('Organization of the users.')
  organizationId: string;

  @Identifier('Present when the users were added only to this folder.', { optional: true })
  folderId?: string;

  @Identifier('Present when the users were added only to this document.', { optional: true })
  documentId?: string;

  @NestedList(() => UserOfEvent, 'New users, and users whose name, e-mail address or initial has changed.', {
    min: 1,
  })
  users: UserOfEvent[];

  @Republished()
  republished?: boolean;
}

/** A user whose membership has ended. */
export class RemovedUser {
  @Identifier('Identifier of the user inside the organization.')
  userId: string;

  @WholeNumber('Version of the removal: it ends every membership with a smaller version.', 1, Number.MAX_SAFE_INTEGER)
  version: number;
}

export class UserRemovedData {
  @Identifier('Organization of the users.')
  organizationId: string;

  @Identifier('Present when the users were removed only from this folder.', { optional: true })
  folderId?: string;

  @Identifier('Present when the users were removed only from this document.', { optional: true })
  documentId?: string;

  @NestedList(() => RemovedUser, 'Users who were members until now.', { min: 1 })
  users: RemovedUser[];

  @Republished()
  republished?: boolean;
}

export class UserErasedData {
  @Identifiers('Users whose data was erased.', { min: 1, max: MOST_ERASED })
  userIds: string[];

  @Identifiers('Organizations in which it was erased. Absent: all organizations of the API key.', { min: 1, optional: true })
  organizationIds?: string[];

  @WholeNumber(
    'Version of the erasure: every membership of these users with a smaller version is gone.',
    1,
    Number.MAX_SAFE_INTEGER,
  )
  version: number;

  @WholeNumber(
    'Time of the call, in milliseconds since 1970. Everything that was stored of these users until then is to be erased.',
    0,
    Number.MAX_SAFE_INTEGER,
  )
  upTo: number;
}

export class OrganizationCreatedData {
  @Identifier('The organization.')
  organizationId: string;

  @Int64('Always 1: an organization does not change.', { minimum: 1 })
  version: number;
}

export class DocumentChangedData {
  @Identifier('Organization of the document.')
  organizationId: string;

  @Identifier('The document.')
  documentId: string;

  @Identifier('The folder of the document; absent: no folder.', { optional: true })
  folderId?: string;

  @OneOf('Access type: users who may open it in addition to its own users and the users of its folder.', ACCESS_TYPES)
  access: AccessType;

  @Int64('Grows with every change of this document.', { minimum: 1 })
  version: number;

  @Republished()
  republished?: boolean;
}

const REVOCATION_REASONS = ['disabled', 'revoked', 'rotated'] as const;

export class ApiKeyRevokedData {
  @Identifier('The API key.')
  apiKey: string;

  @OneOf('Reason: the whole key was disabled, tokens were revoked, or tokens were replaced by a new one.', REVOCATION_REASONS)
  reason: (typeof REVOCATION_REASONS)[number];

  @Described(
    {
      type: 'array',
      items: { type: 'string' },
      description:
        'Ids of the tokens that end, as shown by `keys list`. Absent: all tokens of the key, until it is enabled again.',
    },
    { optional: true },
  )
  tokenIds?: string[];

  @Int64(
    'Latest time at which the tokens end, in milliseconds since 1970. After a rotation with a grace it is later than the event.',
  )
  endsAt: number;
}

export const UserAdded = event('users', EVENT_TYPES.userAdded, UserAddedData, {
  purpose:
    'Users were added to an organization, a folder or a document, or their details have changed. Calls for the same level at the same time may share an event.',
  example: {
    organizationId: 'acme',
    documentId: 'roadmap',
    users: [
      { userId: 'ada', name: 'Ada Lovelace', email: 'ada@example.com', initial: 'A', version: 17, membership: 19 },
      { userId: 'grace', name: 'Grace Hopper', initial: 'G', version: 18, membership: 20 },
    ],
  },
});

export const UserRemoved = event('users', EVENT_TYPES.userRemoved, UserRemovedData, {
  purpose:
    'Users were removed from a folder or a document. Without `folderId` and `documentId` they have left the organization, with all its folders and documents.',
  example: { organizationId: 'acme', documentId: 'roadmap', users: [{ userId: 'grace', version: 21 }] },
});

export const UserErased = event('users', EVENT_TYPES.userErased, UserErasedData, {
  purpose:
    'The users service has erased all data of users, seconds after `users.erase.v1`. A listener erases what it keeps of them, and ignores every `user.added.v1` of them whose `membership` is not greater than `version`. The subject of the event is the API key.',
  example: { userIds: ['ada'], version: 23, upTo: 1769860682117 },
});

export const OrganizationCreated = event('users', EVENT_TYPES.organizationCreated, OrganizationCreatedData, {
  purpose: '`users.add.v1` or `documents.set.v1` has named an organization for the first time.',
  example: { organizationId: 'acme', version: 1 },
});

export const DocumentChanged = event('users', EVENT_TYPES.documentChanged, DocumentChangedData, {
  purpose: '`documents.set.v1` has changed the folder or the access type of a document.',
  example: { organizationId: 'acme', documentId: 'roadmap', folderId: 'plans', access: 'restricted', version: 18 },
});

export const ApiKeyRevoked = event('users', EVENT_TYPES.apiKeyRevoked, ApiKeyRevokedData, {
  purpose:
    'An API key was disabled, or some of its tokens end. A listener must drop everything that it has cached about the key.',
  example: { apiKey: 'demo-key', reason: 'rotated', tokenIds: ['1'], endsAt: 1769860682117 },
});
