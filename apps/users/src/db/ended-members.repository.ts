import type { DataSource } from 'typeorm';
import type { Deleted } from '@app/postgres/retention/deletion-loop';
import { MEMBER_TABLES } from './level';

type MemberTable = (typeof MEMBER_TABLES)[number];

const TODAY = `(now() AT TIME ZONE 'UTC')::date`;
/** A version of this day, drawn at any time of it, is 30 days old. */
const DUE = `day <= ${TODAY} - 31`;

/** A subquery, so that each user is looked up alone. */
const LOCKED_USER = `
      SELECT FROM users u WHERE u.organization = f.organization AND u.user_id = f.user_id FOR NO KEY UPDATE SKIP LOCKED`;

/** Several processes may come at once: a day has one row. */
const RECORD = `
  INSERT INTO version_times (day, version, looked_to)
  SELECT ${TODAY}, nextval('versions'), coalesce((SELECT max(version) FROM version_times), -1)
  WHERE NOT EXISTS (SELECT FROM version_times WHERE day = ${TODAY})
  ON CONFLICT (day) DO NOTHING`;

/**
 * Deletes at most `most` memberships of one table that were removed more than 30 days ago, and at most 32. Locks their users, as every statement that
 * changes memberships does, and skips those whom another one holds. A membership that changed before its user was locked has another version, which is
 * compared again.
 *
 * @param most a number in the text, because a plan without values is for a tenth of all rows
 */
export const deleteRemoved = (table: MemberTable, most: number) => `
  WITH due AS MATERIALIZED (
    SELECT max(version) AS version FROM version_times WHERE ${DUE}
  ), found AS MATERIALIZED (
    SELECT ctid, organization, user_id FROM ${table}
    WHERE removed >= added AND removed <= (SELECT version FROM due) ORDER BY removed LIMIT ${most}
  ), locked AS MATERIALIZED (
    SELECT f.* FROM (SELECT DISTINCT organization, user_id FROM found) f CROSS JOIN LATERAL (${LOCKED_USER}) u
  ), deleted AS (
    DELETE FROM ${table} WHERE ctid = ANY (ARRAY(SELECT f.ctid FROM found f JOIN locked USING (organization, user_id)))
      AND removed >= added AND removed <= (SELECT version FROM due)
    RETURNING 1
  )
  SELECT count(*)::int AS deleted, count(*) = ${most} AS more FROM deleted`;

/**
 * Deletes memberships that ended because their users left the organization more than 30 days ago. Goes through the departures of the oldest day that
 * is due, in their order, and keeps the place in `looked_to`; one process at a time. A day is deleted after its last departure, so this runs after
 * {@link deleteRemoved}. All users of an erasure have one version, so they are looked at together.
 *
 * @param most most users to look at, and most rows of each table to delete, as in {@link deleteRemoved}
 */
export const deleteLeft = (most: number) => `
  WITH due AS MATERIALIZED (
    SELECT day, version, looked_to FROM version_times WHERE ${DUE} ORDER BY day LIMIT 1 FOR UPDATE SKIP LOCKED
  ), found AS MATERIALIZED (
    SELECT u.* FROM due CROSS JOIN LATERAL (
      SELECT organization, user_id, left_version FROM users
      WHERE left_version >= 0 AND left_version > due.looked_to AND left_version <= due.version
      ORDER BY left_version FETCH FIRST (${most}) ROWS WITH TIES
    ) u
  ), locked AS MATERIALIZED (
    SELECT f.* FROM found f CROSS JOIN LATERAL (${LOCKED_USER}) u
  ), ${MEMBER_TABLES.map(
    (table) => `
  of_${table} AS MATERIALIZED (
    SELECT m.ctid FROM locked l CROSS JOIN LATERAL (
      SELECT m.ctid FROM ${table} m WHERE m.organization = l.organization AND m.user_id = l.user_id AND m.added <= l.left_version OFFSET 0
    ) m LIMIT ${most}
  ), from_${table} AS (
    DELETE FROM ${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM of_${table})) AND added <= (SELECT version FROM due) RETURNING 1
  )`,
  ).join()}, looked AS MATERIALIZED (
    SELECT greatest(${MEMBER_TABLES.map((table) => `(SELECT count(*) FROM of_${table})`).join()}) = ${most} AS unfinished,
      (SELECT count(*) FROM found) = (SELECT count(*) FROM locked) AS at_all,
      (SELECT count(*) FROM found) < ${most} AS at_last
  ), moved AS (
    UPDATE version_times v SET looked_to = (SELECT max(left_version) FROM found) FROM due, looked
    WHERE v.day = due.day AND at_all AND NOT unfinished AND NOT at_last
  ), ended AS (
    DELETE FROM version_times v USING due, looked WHERE v.day = due.day AND at_all AND NOT unfinished AND at_last
  )
  SELECT (${MEMBER_TABLES.map((table) => `(SELECT count(*) FROM from_${table})`).join(' + ')})::int AS deleted, unfinished OR at_all AND NOT at_last AS more
  FROM looked`;

/** Keeps a version of today, once, and deletes nothing. In 30 days it shows which memberships had ended by today. */
export async function recordVersion(dataSource: DataSource): Promise<Deleted> {
  await dataSource.query(RECORD);
  return { deleted: 0, more: false };
}
