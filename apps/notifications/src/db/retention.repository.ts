import type { DataSource, EntityManager } from 'typeorm';
import { deleteBy, type Deleted } from '@app/postgres/retention/deletion-loop';
import { DELETED, KEEP_DELETED_MS } from './deleted-notification';
import { recipientsOf } from './recipients-of.sql';

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * A statement of its own: an erasure may rewrite a notification just before it is locked, and a ctid of the new row finds nothing in the snapshot of
 * the statement that has locked it. Exported for the test of its plan.
 */
export const LOCK_OLD = `
  SELECT ctid::text FROM notifications
  WHERE "timestamp" < (extract(epoch FROM now()) * 1000)::bigint - $1::bigint AND document_id <> '${DELETED.documentId}'
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

/** The read state of old notifications, whether they are still there or not. Exported for the test of its plan. */
export const DELETE_OLD_READINGS = `
  WITH old AS MATERIALIZED (
    SELECT ctid FROM readings
    WHERE "timestamp" < (extract(epoch FROM now()) * 1000)::bigint - $1::bigint
    ORDER BY "timestamp" LIMIT $2 FOR UPDATE SKIP LOCKED
  ), deleted AS (
    DELETE FROM readings WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
  )
  SELECT count(*)::int AS deleted, count(*) = $2 AS more FROM old`;

/** Frees the ids of deleted notifications. They have no recipients. Exported for the test of its plan. */
export const FREE_IDS = `
  WITH old AS MATERIALIZED (
    SELECT ctid FROM notifications
    WHERE document_id = '${DELETED.documentId}' AND "timestamp" < (extract(epoch FROM now()) * 1000)::bigint - ${KEEP_DELETED_MS}
    ORDER BY "timestamp" LIMIT $1 FOR UPDATE SKIP LOCKED
  ), freed AS (
    DELETE FROM notifications WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
  )
  SELECT count(*)::int AS deleted, count(*) = $1 AS more FROM old`;

/** Complete erasures, which refuse older events for a week. A command or an event is retried for half an hour. Exported for the test of its plan. */
export const FORGET_ERASURES = `
  WITH old AS MATERIALIZED (
    SELECT id FROM erasures WHERE received_at < now() - interval '7 days' AND user_ids IS NULL
    ORDER BY received_at LIMIT $1 FOR UPDATE SKIP LOCKED
  ), forgotten AS (
    DELETE FROM erasures WHERE id = ANY (ARRAY(SELECT id FROM old))
  )
  SELECT count(*)::int AS deleted, count(*) = $1 AS more FROM old`;

/** Moments of the first run of commands, kept longer than the promised 24 hours, as Idempotency-Keys are. Exported for the test of its plan. */
export const FORGET_FIRST_RUNS = `
  WITH old AS MATERIALIZED (
    SELECT ctid FROM deletions WHERE created_at < now() - interval '25 hours'
    ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
  ), forgotten AS (
    DELETE FROM deletions WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
  )
  SELECT count(*)::int AS deleted, count(*) = $1 AS more FROM old`;

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

/** Frees the ids of at most `most` notifications: those that were deleted longest ago, and more than 25 hours ago. */
export const freeIdsOfDeleted = (dataSource: DataSource, most: number): Promise<Deleted> =>
  deleteBy(dataSource, FREE_IDS, [most]);

/** Deletes at most `most` read states, the oldest by the age of their notifications. */
export const deleteReadingsOlderThan = (dataSource: DataSource, days: number, most: number): Promise<Deleted> =>
  deleteBy(dataSource, DELETE_OLD_READINGS, [days * DAY_MS, most]);

/** Forgets the users of at most `most` erasures that were ordered more than a week ago and are complete. */
export const forgetErasures = (dataSource: DataSource, most: number): Promise<Deleted> =>
  deleteBy(dataSource, FORGET_ERASURES, [most]);

/** Forgets at most `most` commands that first ran more than 25 hours ago. A redelivery after that is a command of its own. */
export const forgetFirstRuns = (dataSource: DataSource, most: number): Promise<Deleted> =>
  deleteBy(dataSource, FORGET_FIRST_RUNS, [most]);
