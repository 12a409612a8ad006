import type { DataSource } from 'typeorm';

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Finds recipients by the users in the notification's content, so recipients need no index by notification. ctid and OFFSET 0 replace joins: they
 * keep each lookup separate, because a planner that expects many lookups would read all recipients. Rows are never updated, so a ctid stays
 * valid within the statement. Exported for the test of its plan.
 */
export const DELETE_OLD = `
  WITH old AS MATERIALIZED (
    SELECT ctid, organization, id, "timestamp", content FROM notifications
    WHERE "timestamp" < (extract(epoch FROM now()) * 1000)::bigint - $1::bigint
    ORDER BY "timestamp" LIMIT $2 FOR UPDATE SKIP LOCKED
  ), recipients_deleted AS (
    DELETE FROM recipients WHERE ctid = ANY (ARRAY(
      SELECT r.ctid FROM old o CROSS JOIN LATERAL json_array_elements(o.content -> 'notifyUsers') u CROSS JOIN LATERAL (
        SELECT ctid FROM recipients r WHERE r.organization = o.organization
          AND r.user_id = u ->> 'userId' AND r."timestamp" = o."timestamp" AND r.notification_id = o.id OFFSET 0
      ) r))
  ), deleted AS (
    DELETE FROM notifications WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
  )
  SELECT count(*)::int AS count FROM old`;

/**
 * Deletes the oldest notifications and their recipients. Several processes may run it at once: each takes different rows.
 *
 * @param most most notifications to delete
 * @returns number of deleted notifications
 */
export async function deleteOlderThan(dataSource: DataSource, days: number, most: number): Promise<number> {
  const [found] = await dataSource.query<{ count: number }[]>(DELETE_OLD, [days * DAY_MS, most]);
  return found?.count ?? 0;
}
