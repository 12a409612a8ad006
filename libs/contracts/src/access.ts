/**
 * Users who may open a document, in addition to users added to it or to its folder. `public`: every user; `organizationPrivate`: the users of the
 * organization; `restricted`: no further user.
 */
export const ACCESS_TYPES = ['public', 'organizationPrivate', 'restricted'] as const;
export type AccessType = (typeof ACCESS_TYPES)[number];

/** Access type of a document that was never set. */
export const DEFAULT_ACCESS: AccessType = 'organizationPrivate';
