export const SCHEMAS = ['users', 'notifications'] as const;
export type Schema = (typeof SCHEMAS)[number];

/** A table with rows of tenants. */
export interface TenantTable {
  name: string;
  /** The column by which its rows belong to a tenant: the number of an organization, or the API key itself. */
  by: 'organization' | 'key' | 'api_key';
  /** Rows that go to another installation. Absent: all. */
  copied?: string;
  /** No row does: what they are for does not exist there. */
  stays?: true;
  /** No index leads from an organization to its rows. */
  unindexed?: true;
}

/**
 * Joins the rows of each organization `o`, by an index. With a plain join the planner reads whole tables, because it takes an organization for a large
 * part of each table (`n_distinct` in tables.sql).
 */
export const ofEach = (rows: string) => `CROSS JOIN LATERAL (${rows} OFFSET 0) t`;

/** A membership that has ended refuses older events, and there are none in another installation. */
const LIVE = `added > removed AND added > (SELECT left_version FROM users.users u
  WHERE u.organization = t.organization AND u.user_id = t.user_id)`;

/**
 * Every table with rows of tenants, a table after those that it refers to. `organizations` stands between the tables by key and those by
 * organization: each installation gives organizations other numbers.
 *
 * Events and erasures must be complete before a tenant moves. A later move counts the orders of erasures, so that complete ones are copied.
 * Notifications asks the users service for the memberships of a user that it does not know, so that their copy stays behind.
 */
export const TENANT_TABLES: Record<Schema, readonly TenantTable[]> = {
  users: [
    { name: 'api_keys', by: 'key' },
    { name: 'tokens', by: 'api_key' },
    { name: 'publisher_grants', by: 'api_key' },
    { name: 'idempotency_keys', by: 'api_key' },
    { name: 'outbox', by: 'api_key', stays: true },
    { name: 'erasures', by: 'api_key', stays: true },
    { name: 'organizations', by: 'api_key' },
    { name: 'users', by: 'organization', unindexed: true },
    { name: 'folders', by: 'organization' },
    { name: 'documents', by: 'organization' },
    { name: 'organization_members', by: 'organization', copied: LIVE },
    { name: 'folder_members', by: 'organization', copied: LIVE },
    { name: 'document_members', by: 'organization', copied: LIVE },
  ],
  notifications: [
    { name: 'idempotency_keys', by: 'api_key' },
    { name: 'deletions', by: 'api_key' },
    { name: 'erasures', by: 'api_key' },
    { name: 'erased_users', by: 'api_key', stays: true },
    { name: 'organizations', by: 'api_key' },
    { name: 'outbox', by: 'organization', stays: true },
    { name: 'documents', by: 'organization' },
    { name: 'document_access', by: 'organization' },
    { name: 'members', by: 'organization', stays: true },
    { name: 'departures', by: 'organization', stays: true },
    { name: 'complete_members', by: 'organization', stays: true },
    { name: 'notifications', by: 'organization' },
    { name: 'recipients', by: 'organization' },
    { name: 'read_marks', by: 'organization' },
    { name: 'readings', by: 'organization' },
  ],
};

/** Tables that have nothing of a tenant. */
export const COMMON_TABLES = ['migrations', 'version_times'];
