import { Described, Field, Flag, Identifier, identifierProblem, Int64, LIMITS, OneOf } from './fields';
import { query } from './message';

export const LEVELS = ['organization', 'folder', 'document'] as const;
export type MembershipLevel = (typeof LEVELS)[number];

/** Most memberships in one answer. */
export const MEMBERSHIPS_PAGE = 5000;

/** A membership of a user. */
export class Membership {
  @OneOf('Level of the membership.', LEVELS)
  level: MembershipLevel;

  @Described({ type: 'string', description: 'Id of the folder or document; empty for the organization.' })
  id: string;

  @Int64('`membership` of its `user.added.v1`.', { minimum: 0, optional: true })
  version?: number;
}

export class ListMembershipsRequest {
  @Identifier('The organization.')
  organizationId: string;

  @Identifier('The user.')
  userId: string;

  @OneOf('With `afterId`: the last membership of the previous page.', LEVELS, { optional: true })
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
    description: 'Memberships of the user, in a fixed order.',
  })
  memberships: Membership[];

  @Flag('Whether there are more memberships.')
  more: boolean;

  @Int64('`version` of the last `user.removed.v1` for the whole organization. Absent: the user has never left it.', {
    minimum: 1,
    optional: true,
  })
  left?: number;
}

export const ListMemberships = query('memberships.list.v1', ListMembershipsRequest, ListMembershipsResult, {
  service: 'users',
  callers: ['notifications'],
  purpose: 'Reads the memberships of a user in pages. A user who was never added, or was removed everywhere, has none.',
  example: {
    request: { organizationId: 'acme', userId: 'ada', afterLevel: 'organization', afterId: '' },
    result: {
      memberships: [
        { level: 'folder', id: 'plans', version: 12 },
        { level: 'document', id: 'roadmap', version: 17 },
      ],
      more: false,
      left: 9,
    },
  },
});
