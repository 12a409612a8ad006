import type { DataSource } from 'typeorm';

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Recipients are found by the users that the notification names: they need no index of their own for this. Nothing is joined, and
 * keeps each lookup one: a planner that expects many of them would read all recipients instead. A ctid stays that of its row within the
 * statement, because rows are never updated. Exported for the test of its plan.
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
 * Deletes the oldest notifications, and what points to them. Several processes may at once: each takes others.
 *
 * @param most so many at a time
 * @returns how many there were
 */
export async function deleteOlderThan(dataSource: DataSource, days: number, most: number): Promise<number> {
  const [found] = await dataSource.query<{ count: number }[]>(DELETE_OLD, [days * DAY_MS, most]);
  return found?.count ?? 0;
}
