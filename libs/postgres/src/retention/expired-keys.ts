import type { DataSource } from 'typeorm';
import { deleteBy, deleteOldest, type OldRows } from './deletion-loop';
import { keysDeleted } from '../metrics';

/** An hour more than promised, because created_at is the start of the statement. */
export const KEEP_KEYS_HOURS = 25;

/** Exported for the test of its plan. */
export const DELETE_EXPIRED_KEYS = deleteOldest(
  'idempotency_keys',
  `created_at < now() - interval '${KEEP_KEYS_HOURS} hours'`,
  'created_at',
);

/** Expired Idempotency-Keys of a service. Calls with a key delete some too, and these are the rest when few calls come. */
export const expiredKeys = (dataSource: DataSource): OldRows => ({
  name: 'idempotency keys',
  deleteSome: (most) => deleteBy(dataSource, DELETE_EXPIRED_KEYS, [most]),
  counter: keysDeleted,
});
