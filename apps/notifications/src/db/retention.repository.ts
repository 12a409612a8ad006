import type { DataSource } from 'typeorm';

const DAY_MS = 24 * 60 * 60 * 1000;

/** Recipients are found by the users that the notification names: they need no index of their own for this. */
const DELETE_OLD = `
  WITH old AS MATERIALIZED (
    SELECT organization, id, "timestamp", content FROM notifications
    WHERE "timestamp" < (extract(epoch FROM now()) * 1000)::bigint - $1::bigint
    ORDER BY "timestamp" LIMIT $2 FOR UPDATE SKIP LOCKED
  ), named AS (
    DELETE FROM recipients r USING old o, LATERAL json_array_elements(o.content -> 'notifyUsers') u
    WHERE r.organization = o.organization AND r.user_id = u ->> 'userId' AND r."timestamp" = o."timestamp" AND r.notification_id = o.id
  ), gone AS (
    DELETE FROM notifications n USING old o WHERE n.organization = o.organization AND n.id = o.id
  )
  SELECT count(*)::int AS count FROM old`;

/**
 * Deletes the oldest notifications, and what points to them. Several processes may at once: each takes others.
 *
 * @param most so many at a time
 * @returns how many there were
 */
export async function deleteOlderThan(dataSource: DataSource, days: number, most: number): Promise<number> {
  return dataSource.transaction(async (manager) => {
    // Without knowing how few it is about, PostgreSQL would read all recipients.
    await manager.query('SET LOCAL plan_cache_mode = force_custom_plan');
    const [found] = await manager.query<{ count: number }[]>(DELETE_OLD, [days * DAY_MS, most]);
    return found?.count ?? 0;
  });
}
