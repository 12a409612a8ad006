import type { DataSource } from 'typeorm';
import { deleteBy, type OldRows } from './deletion-loop';
import { keysDeleted } from '../metrics';

/** An hour more than promised, because created_at is the start of the statement. */
export const KEEP_KEYS_HOURS = 25;

/** Exported for the test of its plan. */
export const DELETE_EXPIRED_KEYS = `
  WITH old AS MATERIALIZED (
    SELECT ctid FROM idempotency_keys WHERE created_at < now() - interval '${KEEP_KEYS_HOURS} hours'
    ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
  ), deleted AS (
    DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
  )
  SELECT count(*)::int AS deleted, count(*) = $1 AS more FROM old`;

/** Expired Idempotency-Keys of a service. Calls with a key delete some too, and these are the rest when few calls come. */
export const expiredKeys = (dataSource: DataSource): OldRows => ({
  name: 'idempotency keys',
  deleteSome: (most) => deleteBy(dataSource, DELETE_EXPIRED_KEYS, [most]),
  counter: keysDeleted,
});
