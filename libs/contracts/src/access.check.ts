import { Described, Flag, Identifier } from './fields';
import { query } from './message';

/** Reasons why a user may open a document, in this order: the first one that applies is returned. */
const ACCESS_LEVELS = ['document', 'folder', 'organization', 'public'] as const;
export type AccessLevel = (typeof ACCESS_LEVELS)[number];

export class CheckAccessRequest {
  @Identifier('Organization of the document.')
  organizationId: string;

  @Identifier('The document. An unknown document is organizationPrivate and in no folder.')
  documentId: string;

  @Identifier('The user.')
  userId: string;
}

export class CheckAccessResult {
  @Flag('Whether the user may open the document.')
  allowed: boolean;

  @Described(
    {
      type: 'string',
      enum: [...ACCESS_LEVELS],
      description:
        'Reason: the user was added to the document, to its folder or to the organization, or the document is public. Absent when not allowed.',
    },
    { optional: true },
  )
  level?: AccessLevel;
}

export const CheckAccess = query('access.check.v1', CheckAccessRequest, CheckAccessResult, {
  service: 'users',
  open: true,
  purpose: 'Checks whether a user may open a document.',
  example: {
    request: { organizationId: 'acme', documentId: 'roadmap', userId: 'ada' },
    result: { allowed: true, level: 'document' },
  },
});
