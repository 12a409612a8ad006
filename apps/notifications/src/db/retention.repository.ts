import type { DataSource, EntityManager } from 'typeorm';
import { deleteOldest, type Deleted } from '@app/postgres/retention/deletion-loop';
import { KEEP_KEYS_HOURS } from '@app/postgres/retention/expired-keys';
import { DELETED, KEEP_DELETED_MS } from './deleted-notification';
import { recipientsOf } from './recipients-of.sql';

export const DAY_MS = 24 * 60 * 60 * 1000;
const NOW_MS = '(extract(epoch FROM now()) * 1000)::bigint';

/**
 * A statement of its own: an erasure may rewrite a notification just before it is locked, and a ctid of the new row finds nothing in the snapshot of
 * the statement that has locked it. Exported for the test of its plan.
 */
export const LOCK_OLD = `
  SELECT ctid::text FROM notifications
  WHERE "timestamp" < ${NOW_MS} - $1::bigint AND document_id <> '${DELETED.documentId}'
  ORDER BY "timestamp" LIMIT $2 FOR UPDATE SKIP LOCKED`;

/**
 * Takes recipients with their notifications. ctids replace joins, because a planner that expects many rows would read all recipients. Exported for
 * the test of its plan.
 */
export const DELETE_LOCKED = `
  WITH old AS MATERIALIZED (
    SELECT organization, id, "timestamp", content FROM notifications WHERE ctid = ANY ($1::tid[])
  ), ${recipientsOf('old')}, recipients_deleted AS (
    DELETE FROM recipients WHERE ctid = ANY (ARRAY(SELECT ctid FROM recipients_found))
  )
  DELETE FROM notifications WHERE ctid = ANY ($1::tid[])`;

/** The read state of old notifications, whether they are still there or not. $2 is their age in milliseconds. */
export const DELETE_OLD_READINGS = deleteOldest('readings', `"timestamp" < ${NOW_MS} - $2::bigint`, '"timestamp"');

/** Frees the ids of deleted notifications. They have no recipients. */
export const FREE_IDS = deleteOldest(
  'notifications',
  `document_id = '${DELETED.documentId}' AND "timestamp" < ${NOW_MS} - ${KEEP_DELETED_MS}`,
  '"timestamp"',
);

/** Complete erasures, which refuse older events for a week. A command or an event is retried for half an hour. */
export const FORGET_ERASURES = deleteOldest(
  'erasures',
  `received_at < now() - interval '7 days' AND user_ids IS NULL`,
  'received_at',
  'id',
);

/**
 * Moments of the first run of commands, kept longer than the promised 24 hours, as Idempotency-Keys are. A redelivery after that is a command of its
 * own.
 */
export const FORGET_FIRST_RUNS = deleteOldest(
  'deletions',
  `created_at < now() - interval '${KEEP_KEYS_HOURS} hours'`,
  'created_at',
);

/**
 * Deletes the oldest notifications and their recipients. Several processes may run it at once: each takes different rows.
 *
 * @param most most notifications to delete
 */
export function deleteOlderThan(dataSource: DataSource, days: number, most: number): Promise<Deleted> {
  return dataSource.transaction((manager) => deleteOld(manager, days, most));
}

/** The same, in a transaction. */
export async function deleteOld(manager: EntityManager, days: number, most: number): Promise<Deleted> {
  const locked = await manager.query<{ ctid: string }[]>(LOCK_OLD, [days * DAY_MS, most]);
  if (locked.length > 0) await manager.query(DELETE_LOCKED, [locked.map(({ ctid }) => ctid)]);
  return { deleted: locked.length, more: locked.length === most };
}
