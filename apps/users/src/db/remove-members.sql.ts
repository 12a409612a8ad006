import { EVENT_TYPES } from '@app/contracts/event-types';
import type { PreparedStatement } from '@app/postgres/connections/query-prepared';
import { expiredCte } from './idempotency-keys.repository';
import { MEMBER_TABLES, type Level } from './level';
import { live } from './live.sql';
import { admittedCte } from './organization.sql';

/**
 * Ends the memberships of one folder or document. The array limits the index range to the named users: with the join alone a plan may read all
 * members.
 */
const END = (of: 'folder' | 'document') => `
    UPDATE ${of}_members m SET removed = nextval('versions') FROM locked u
    WHERE m.organization = u.organization AND m.${of}_id = $8::text AND m.user_id = u.user_id AND ${live()}
      AND m.organization = (SELECT organization FROM locked LIMIT 1) AND m.user_id = ANY (ARRAY(SELECT user_id FROM locked))
    RETURNING m.user_id, m.removed AS version`;

const hasLive = (table: string) =>
  `EXISTS (SELECT FROM ${table} m WHERE m.organization = u.organization AND m.user_id = u.user_id AND ${live()})`;

/** Ends all memberships of the users by one number. */
const LEAVE = `
    UPDATE users u SET left_version = nextval('versions') FROM locked
    WHERE u.organization = locked.organization AND u.user_id = locked.user_id
      AND (${MEMBER_TABLES.map(hasLive).join(' OR ')})
    RETURNING u.user_id, u.left_version AS version`;

/**
 * Returns no row and changes nothing when it is too late, or when the key has its answer already. Locks as the statements that add members, and
 * draws versions under these locks.
 */
const removeMembers = (of: Level['of']): PreparedStatement => ({
  name: `remove-${of}-members`,
  text: `
  WITH ${admittedCte(
    4,
    'AND NOT EXISTS (SELECT FROM idempotency_keys WHERE api_key = $1::text AND operation = $5::text AND key = $6::text)',
  )}, tenant AS (
    SELECT k.key FROM admitted, api_keys k WHERE k.key = $1::text
  ), locked AS MATERIALIZED (
    SELECT u.organization, u.user_id, u.left_version
    FROM tenant JOIN organizations o ON o.api_key = tenant.key AND o.organization_id = $2::text
    JOIN users u ON u.organization = o.id AND u.user_id = ANY ($3::text[])
    ORDER BY u.user_id FOR NO KEY UPDATE OF u
  ), removed AS (${of === 'organization' ? LEAVE : END(of)}
  ), user_removed AS (
    INSERT INTO outbox (type, api_key, organization_id, data, trace)
    SELECT '${EVENT_TYPES.userRemoved}', $1::text, $2::text, json_build_object('organizationId', $2::text,
      ${of === 'organization' ? '' : `'${of}Id', $8::text,`}
      'users', json_agg(json_build_object('userId', user_id, 'version', version))), $${of === 'organization' ? 8 : 9}::text
    FROM removed HAVING count(*) > 0
  ), ${expiredCte('$1', '$5::text', '$6')}, answered AS (
    INSERT INTO idempotency_keys (api_key, operation, key, fingerprint, answer)
    SELECT key, $5::text, $6::text, $7::bytea,
      json_build_object('removed', (
        SELECT coalesce(json_agg(place - 1), '[]') FROM removed JOIN unnest($3::text[]) WITH ORDINALITY AS kept(user_id, place) USING (user_id)
      )) FROM tenant
  )
  SELECT EXISTS (SELECT FROM tenant) AS known, (SELECT coalesce(array_agg(user_id), '{}') FROM removed) AS removed FROM admitted`,
});

/**
 * The statement that removes users at each level. Parameters: 1 api key, 2 organizationId, 3 userIds, whose places the answer keeps,
 * 4 deadline, 5 operation and 6 key of the answer, 7 fingerprint, 8 folderId or documentId. The last one is the trace context or null.
 */
export const REMOVE_MEMBERS: Record<Level['of'], PreparedStatement> = {
  organization: removeMembers('organization'),
  folder: removeMembers('folder'),
  document: removeMembers('document'),
};
