/**
 * Who may open a document, beside those who were added to it or to its folder: `public`: every user; `organizationPrivate`: the users of the
 * organization; `restricted`: nobody.
 */
export const ACCESS_TYPES = ['public', 'organizationPrivate', 'restricted'] as const;
export type AccessType = (typeof ACCESS_TYPES)[number];

/** What a document has as long as nobody has said otherwise. */
export const DEFAULT_ACCESS: AccessType = 'organizationPrivate';
