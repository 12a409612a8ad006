import type { DataSource } from 'typeorm';
import { deleteOldest, type Deleted } from '@app/postgres/retention/deletion-loop';

const TODAY = `(now() AT TIME ZONE 'UTC')::date`;
/** The version of such a day, which was seen at any time of it, is 30 days old. */
const DUE_DAY = `day <= ${TODAY} - 31`;
const DUE = `(SELECT max(version) FROM version_times WHERE ${DUE_DAY})`;

/**
 * The greatest version at which a known membership has ended is that of today, once for all processes. Versions before the one that is due are of no
 * use.
 */
export const RECORD = `
  WITH recorded AS (
    INSERT INTO version_times (day, version)
    SELECT ${TODAY}, seen.version
    FROM (SELECT greatest((SELECT max(removed) FROM members WHERE removed >= added), (SELECT max(version) FROM departures)) AS version) seen
    WHERE seen.version IS NOT NULL AND NOT EXISTS (SELECT FROM version_times WHERE day = ${TODAY})
    ON CONFLICT (day) DO NOTHING
  )
  DELETE FROM version_times WHERE day < (SELECT max(day) FROM version_times WHERE ${DUE_DAY})`;

/**
 * Deletes at most $1 copied memberships that were removed more than 30 days ago, and at most 32. One that begins again meanwhile is locked, or has
 * another version when it is compared under the lock. An older addition that arrives later is refused by its time. Users stay complete: nothing of
 * theirs is missing, and without any row each read would ask. One that a question has ended counts from its addition, because the event of its removal
 * is on its way.
 */
export const DELETE_REMOVED = deleteOldest('members', `removed >= added AND removed <= ${DUE}`, 'removed');

const ENDED_BY = `m.organization = o.organization AND m.user_id = o.user_id AND m.added > m.removed AND m.added <= o.version`;

/**
 * Deletes memberships that ended because their users left, and then the departures that end none any more: a membership without its departure would
 * be live. $1 is the most users to look at, and the most memberships to delete.
 */
export const DELETE_LEFT = `
  WITH old AS MATERIALIZED (
    SELECT ctid, organization, user_id, version FROM departures WHERE version <= ${DUE}
    ORDER BY version LIMIT $1 FOR UPDATE SKIP LOCKED
  ), ended AS MATERIALIZED (
    SELECT m.ctid FROM old o CROSS JOIN LATERAL (
      SELECT m.ctid FROM members m WHERE ${ENDED_BY} FOR UPDATE SKIP LOCKED
    ) m LIMIT $1
  ), deleted AS (
    DELETE FROM members WHERE ctid = ANY (ARRAY(SELECT ctid FROM ended))
  ), gone AS (
    DELETE FROM departures WHERE ctid = ANY (ARRAY(
      SELECT o.ctid FROM old o WHERE (SELECT true FROM members m WHERE ${ENDED_BY} LIMIT 1) IS NULL))
  )
  SELECT (SELECT count(*)::int FROM ended) AS deleted, EXISTS (SELECT FROM ended) OR (SELECT count(*) FROM old) = $1 AS more`;

/** Keeps the greatest known version of today. In 30 days it shows which memberships had ended by today. */
export async function recordVersion(dataSource: DataSource): Promise<Deleted> {
  await dataSource.query(RECORD);
  return { deleted: 0, more: false };
}
