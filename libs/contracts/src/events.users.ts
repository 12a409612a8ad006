import { ACCESS_TYPES, type AccessType } from './access';
import { Described, Flag, Identifier, Nested, NestedList, OneOf } from './fields';
import { event } from './event';
import { EVENT_TYPES } from './event-types';

const Republished = () =>
  Flag('Present, and true, when nothing has happened now: what there is was told again, see `npm run events`.', {
    optional: true,
  });

/** A user as it is now. */
export class UserOfEvent {
  @Identifier('Identifier of the user inside the organization.')
  userId: string;

  @Described({ type: 'string', description: 'Display name; absent when none was sent.' }, { optional: true })
  name?: string;

  @Described({ type: 'string', description: 'E-mail address; absent when none was sent.' }, { optional: true })
  email?: string;

  @Described({ type: 'string', description: 'Initial; absent when there is neither one nor a name.' }, { optional: true })
  initial?: string;

  @Described(
    {
      type: 'integer',
      minimum: 1,
      description:
        'Grows with every change of this user. Absent when another call changes the user at the same moment: its event has it.',
    },
    { optional: true },
  )
  version?: number;
}

export class UserAddedData {
  @Identifier('Organization of the users.')
  organizationId: string;

  @Identifier('Present when they were added to this folder only.', { optional: true })
  folderId?: string;

  @Identifier('Present when they were added to this document only.', { optional: true })
  documentId?: string;

  @NestedList(() => UserOfEvent, 'Those who are new there, and those whose name, e-mail address or initial has changed.', {
    min: 1,
  })
  users: UserOfEvent[];

  @Republished()
  republished?: boolean;
}

export class OrganizationCreatedData {
  @Identifier('The organization.')
  organizationId: string;

  @Described({ type: 'integer', minimum: 1, description: 'Always 1: an organization has nothing that could change.' })
  version: number;
}

export class DocumentChangedData {
  @Identifier('Organization of the document.')
  organizationId: string;

  @Identifier('The document.')
  documentId: string;

  @Identifier('The folder that it is in; absent: in none.', { optional: true })
  folderId?: string;

  @OneOf('Who may open it beside its own users and those of its folder.', ACCESS_TYPES)
  access: AccessType;

  @Described({ type: 'integer', minimum: 1, description: 'Grows with every change of this document.' })
  version: number;

  @Republished()
  republished?: boolean;
}

export const REVOCATION_REASONS = ['disabled', 'revoked', 'rotated'] as const;

export class ApiKeyRevokedData {
  @Identifier('The API key.')
  apiKey: string;

  @OneOf('What was done: a whole key was disabled, tokens were revoked, or replaced by a new one.', REVOCATION_REASONS)
  reason: (typeof REVOCATION_REASONS)[number];

  @Described(
    {
      type: 'array',
      items: { type: 'string' },
      description: 'Ids of the tokens that end, as `keys list` shows them; absent: all of the key, until it is enabled again.',
    },
    { optional: true },
  )
  tokenIds?: string[];

  @Described({
    type: 'integer',
    description: 'When they end at the latest, in milliseconds since 1970: later than the event after a rotation with a grace.',
  })
  endsAt: number;
}

export const UserAdded = event('users', EVENT_TYPES.userAdded, UserAddedData, {
  purpose:
    'Users were added to an organization, a folder or a document, or their details have changed: one event for each call that did so.',
  example: {
    organizationId: 'acme',
    documentId: 'roadmap',
    users: [
      { userId: 'ada', name: 'Ada Lovelace', email: 'ada@example.com', initial: 'A', version: 17 },
      { userId: 'grace', name: 'Grace Hopper', initial: 'G', version: 17 },
    ],
  },
});

export const OrganizationCreated = event('users', EVENT_TYPES.organizationCreated, OrganizationCreatedData, {
  purpose: '`users.add.v1` or `documents.set.v1` has named an organization for the first time.',
  example: { organizationId: 'acme', version: 1 },
});

export const DocumentChanged = event('users', EVENT_TYPES.documentChanged, DocumentChangedData, {
  purpose: '`documents.set.v1` has changed the folder of a document, or who may open it.',
  example: { organizationId: 'acme', documentId: 'roadmap', folderId: 'plans', access: 'restricted', version: 18 },
});

export const ApiKeyRevoked = event('users', EVENT_TYPES.apiKeyRevoked, ApiKeyRevokedData, {
  purpose: 'An API key was disabled, or tokens of it end: what a listener has kept about the key has to be asked for anew.',
  example: { apiKey: 'demo-key', reason: 'rotated', tokenIds: ['1'], endsAt: 1769860682117 },
});

/** What a listener of {@link UserAdded} needs of the message; the tenant is in its header. */
export class UserAddedEvent {
  @Nested(() => UserAddedData, 'What happened.')
  data: UserAddedData;
}

/** What a listener of {@link DocumentChanged} needs of the message; the tenant is in its header. */
export class DocumentChangedEvent {
  @Nested(() => DocumentChangedData, 'What happened.')
  data: DocumentChangedData;
}
