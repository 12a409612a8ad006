import { EVENT_TYPES } from '@app/contracts/event-types';
import { MEMBER_TABLES } from './level';
import { live } from './live.sql';

/** Memberships of each table that one statement renews. Each may need an event of its own. */
const MOST_RENEWED = 500;

const levels = MEMBER_TABLES.map((table) => {
  const level = table.replace('_members', '');
  return { table, level, id: level === 'organization' ? `''` : `${level}_id` };
});

/** Live memberships of the user `u`. OFFSET 0 keeps each look-up separate. */
const ofUser = (table: string, columns: string, more: string) =>
  `SELECT ${columns} FROM ${table} m WHERE m.organization = u.organization AND m.user_id = u.user_id AND ${live()} ${more}`;

/**
 * Gives greater versions to what an erasure has left of users, and writes an event for each who is a member: listeners ignore what is not newer than the
 * erasure. A call that ran at the same time as that of the erasure may have added a user for the first time with smaller versions. Its event may have
 * details that were hidden while it waited, or new details with a membership that is over.
 *
 * The rows of the users are locked by an earlier statement, so one number is enough. Parameters: 1 organizations, 2 userIds, 3 version of the erasure.
 */
export const RENEW = `
  WITH held AS MATERIALIZED (
    SELECT u.* FROM unnest($1::bigint[], $2::text[]) AS e(organization, user_id) CROSS JOIN LATERAL (
      SELECT u.ctid AS place, u.* FROM users u WHERE u.organization = e.organization AND u.user_id = e.user_id OFFSET 0
    ) u
  ), drawn AS MATERIALIZED (
    SELECT nextval('versions') AS version
  ), ${levels
    .map(
      ({ table, level, id }) => `
  of_${level} AS (
    UPDATE ${table} SET added = (SELECT version FROM drawn) WHERE ctid = ANY (ARRAY(
      SELECT m.ctid FROM held u CROSS JOIN LATERAL (${ofUser(table, 'm.ctid', 'AND m.added <= $3::bigint OFFSET 0')}) m LIMIT ${MOST_RENEWED}))
    RETURNING organization, user_id, '${level}' AS level, ${id} AS id, added
  )`,
    )
    .join()}, renewed AS MATERIALIZED (
    ${levels.map(({ level }) => `SELECT * FROM of_${level}`).join(' UNION ALL ')}
  ), announced AS MATERIALIZED (
    SELECT u.*, r.level, r.id, r.added FROM renewed r JOIN held u USING (organization, user_id)
    UNION ALL
    SELECT u.*, m.* FROM held u CROSS JOIN LATERAL (
      SELECT * FROM (${levels
        .map(
          ({ table, level, id }) =>
            `(${ofUser(table, `'${level}' AS level, ${id} AS id, m.added`, 'AND m.added > $3::bigint LIMIT 1')})`,
        )
        .join(' UNION ALL ')}) every LIMIT 1
    ) m
    WHERE (u.organization, u.user_id) NOT IN (SELECT organization, user_id FROM renewed)
  ), newer AS (
    -- Also of a user who is no member now: listeners ignore the older version when the user is added again.
    UPDATE users SET version = (SELECT version FROM drawn)
    WHERE ctid = ANY (ARRAY(SELECT place FROM held WHERE version <= $3::bigint))
  ), user_added AS (
    INSERT INTO outbox (type, api_key, organization_id, data)
    SELECT '${EVENT_TYPES.userAdded}', o.api_key, o.organization_id, json_strip_nulls(json_build_object('organizationId', o.organization_id,
      'folderId', CASE a.level WHEN 'folder' THEN a.id END, 'documentId', CASE a.level WHEN 'document' THEN a.id END, 'republished', true,
      'users', json_agg(json_build_object('userId', a.user_id, 'name', a.name, 'email', a.email, 'initial', a.initial,
        'version', CASE WHEN a.version <= $3::bigint THEN drawn.version ELSE a.version END, 'membership', a.added))))
    FROM announced a CROSS JOIN drawn CROSS JOIN LATERAL (SELECT * FROM organizations o WHERE o.id = a.organization OFFSET 0) o
    GROUP BY o.id, o.api_key, o.organization_id, a.level, a.id
  )
  SELECT EXISTS (SELECT FROM announced) AS written,
    greatest(${levels.map(({ level }) => `(SELECT count(*) FROM of_${level})`).join()}) = ${MOST_RENEWED} AS more`;
