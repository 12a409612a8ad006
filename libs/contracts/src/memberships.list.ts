import { Described, Field, Flag, Identifier, identifierProblem, LIMITS, OneOf } from './fields';
import { query } from './message';

export const LEVELS = ['organization', 'folder', 'document'] as const;
export type MembershipLevel = (typeof LEVELS)[number];

/** Memberships in one answer, at most. */
export const MEMBERSHIPS_PAGE = 5000;

/** Where a user was added to. */
export class Membership {
  @OneOf('Level of the membership.', LEVELS)
  level: MembershipLevel;

  @Described({ type: 'string', description: 'The folder or document; empty for the organization.' })
  id: string;
}

export class ListMembershipsRequest {
  @Identifier('The organization.')
  organizationId: string;

  @Identifier('The user.')
  userId: string;

  @OneOf('With `afterId`, the last membership of the page before.', LEVELS, { optional: true })
  afterLevel?: MembershipLevel;

  @Field(
    (value) => (value === '' ? undefined : identifierProblem(value)),
    { type: 'string', maxLength: LIMITS.identifierBytes, description: 'Its `id`: see `afterLevel`.' },
    { optional: true },
  )
  afterId?: string;
}

export class ListMembershipsResult {
  @Described({
    type: 'array',
    items: { $ref: '#/components/schemas/Membership' },
    maxItems: MEMBERSHIPS_PAGE,
    description: 'Where the user was added to, in a fixed order.',
  })
  memberships: Membership[];

  @Flag('Whether there are more.')
  more: boolean;
}

export const ListMemberships = query('memberships.list.v1', ListMembershipsRequest, ListMembershipsResult, {
  service: 'users',
  callers: ['notifications'],
  purpose: 'Reads where a user was added to, a page at a time. A user who was added nowhere has no memberships.',
  example: {
    request: { organizationId: 'acme', userId: 'ada', afterLevel: 'organization', afterId: '' },
    result: {
      memberships: [
        { level: 'folder', id: 'plans' },
        { level: 'document', id: 'roadmap' },
      ],
      more: false,
    },
  },
});
